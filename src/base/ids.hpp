#pragma once

#include <cstdint>
#include <functional>
#include <limits>

namespace teller::base {

/// Typed 32-bit row number. Ids of different tags never mix; the default value is "none".
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(uint32_t value) : value_(value) {}

  constexpr bool valid() const { return value_ != kNone; }
  constexpr uint32_t value() const { return value_; }

  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  uint32_t value_ = kNone;
};

}  // namespace teller::base

template <class Tag>
struct std::hash<teller::base::Id<Tag>> {
  size_t operator()(teller::base::Id<Tag> id) const noexcept { return id.value(); }
};
