#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace teller::base {

struct StringTag;
/// A string of a StringPool. Row 0 is always the empty string.
using StringId = Id<StringTag>;

/// Interned strings, numbered in the order of first use. Threads: confined while growing, immutable after.
/// Lifetime: views stay valid as long as the pool, also while it grows. Bytes are kept as given (they may not be UTF-8).
class StringPool {
 public:
  StringPool();
  StringPool(StringPool&&) noexcept = default;
  StringPool& operator=(StringPool&&) noexcept = default;

  StringId Intern(std::string_view text);
  /// The id of a string that is already here, or none.
  StringId Find(std::string_view text) const;
  std::string_view Text(StringId id) const { return id.valid() ? views_[id.value()] : std::string_view(); }
  size_t size() const { return views_.size(); }
  uint64_t bytes() const;

 private:
  uint32_t Slot(std::string_view text, uint64_t hash) const;
  void Grow();
  std::string_view Keep(std::string_view text);

  std::vector<std::string_view> views_;
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t> table_;  // open addressing; value is row + 1, 0 = free
  std::vector<std::vector<char>> blocks_;
  size_t block_used_ = 0;
};

}  // namespace teller::base
