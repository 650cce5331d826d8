#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace teller::base {

/// Why an operation failed. Values are never renumbered.
enum class Code : uint8_t {
  kUsage = 1,        ///< the caller asked for something that makes no sense
  kNotFound = 2,     ///< no such file or nothing usable in it
  kUnreadable = 3,   ///< the system refused to read or write
  kBadFormat = 4,    ///< the bytes are not what they should be
  kUnsupported = 5,  ///< recognized, but not readable by this version
  kLimit = 6,        ///< a bound of base/limits.hpp was exceeded
  kCancelled = 7,    ///< the user stopped the work
};

/// A failed operation: what, where, and what to do, in one line without a full stop.
struct Error {
  Code code = Code::kUsage;
  std::string message;
  std::string path = {};  ///< file it concerns; empty when none
  std::string at = {};    ///< place in the file, such as "byte 812" or "line 4"; empty when none

  /// One line "path:at: message".
  std::string Text() const;
};

/// Value or Error. Spelled like std::expected so that a later switch is a typedef.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}     // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  const Error& error() const { return std::get<1>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> state_;
};

/// Success, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace teller::base

/// Aborts when an invariant of our own code is broken; never reachable from input.
#define TELLER_CHECK(condition) \
  ((condition) ? (void)0 : ::teller::base::CheckFailed(#condition, __FILE__, __LINE__))

/// Returns the error of a Status from the enclosing function.
#define TELLER_TRY(expression)                                      \
  do {                                                              \
    if (auto teller_status = (expression); !teller_status.ok()) {   \
      return teller_status.error();                                 \
    }                                                               \
  } while (false)
