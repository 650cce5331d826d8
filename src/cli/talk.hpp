#pragma once

#include <string_view>

namespace teller::cli {

/// Exit statuses (docs/reference/exit-codes.md).
inline constexpr int kDone = 0;
inline constexpr int kFound = 1;
inline constexpr int kFailed = 2;
inline constexpr int kLostInput = 3;

/// One line on standard error, made printable.
void Say(std::string_view text);

/// Says why and gives kFailed.
int Fail(std::string_view text);

}  // namespace teller::cli
