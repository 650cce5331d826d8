#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace teller::encode {

constexpr bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr bool IsWord(char c) {
  return IsDigit(c) || IsLetter(c) || c == '_';
}

/// Free text without its variable parts: addresses, hashes, UUIDs and numbers that stand alone (also in "256x256",
/// "3.5", "name_12") become "#"; paths keep their last part; control bytes become blanks. Numbers inside words stay
/// ("all2all", "fp8", "mul2"). Cost: linear.
std::string WithoutNumbers(std::string_view text);

/// Cuts a name to kMaxSymbolBytes.
std::string Bounded(std::string text);

/// FNV-1a.
uint64_t HashOf(std::string_view text);

}  // namespace teller::encode
