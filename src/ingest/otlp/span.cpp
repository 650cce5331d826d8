#include "ingest/otlp/span.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace teller::ingest::otlp {

namespace {

constexpr std::array<std::string_view, 6> kKinds = {"", "internal", "server", "client", "producer", "consumer"};
constexpr size_t kMaxOddId = 64;  // of an id that is neither hex nor base64

bool IsHex(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}

int Base64Digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+' || c == '-') return 62;
  if (c == '/' || c == '_') return 63;
  return -1;
}

/// Bytes of base64 text in either alphabet; empty when it is none.
std::string FromBase64(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int digit = Base64Digit(c);
    if (digit < 0) return {};
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return out;
}

}  // namespace

std::string Value::ToText() const {
  switch (type) {
    case Type::kNone: return {};
    case Type::kText: return text;
    case Type::kInteger: return std::to_string(integer);
    case Type::kTruth: return integer != 0 ? "true" : "false";
    case Type::kReal: {
      std::array<char, 32> out;
      const auto [end, error] = std::to_chars(out.data(), out.data() + out.size(), real);
      return error == std::errc() ? std::string(out.data(), end) : std::string();
    }
  }
  return {};
}

const Value* Find(const std::vector<Field>& fields, std::string_view key) {
  const auto it = std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.key == key; });
  return it == fields.end() ? nullptr : &it->value;
}

std::string TextOf(const std::vector<Field>& fields, std::string_view key) {
  const Value* value = Find(fields, key);
  return value == nullptr ? std::string() : value->ToText();
}

std::string_view KindName(int kind) {
  return kind > 0 && static_cast<size_t>(kind) < kKinds.size() ? kKinds[static_cast<size_t>(kind)] : kKinds[0];
}

int KindFromName(std::string_view name) {
  constexpr std::string_view kPrefix = "SPAN_KIND_";
  if (name.substr(0, kPrefix.size()) != kPrefix) return 0;
  std::string lower(name.substr(kPrefix.size()));
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto it = std::find(kKinds.begin() + 1, kKinds.end(), lower);
  return it == kKinds.end() ? 0 : static_cast<int>(it - kKinds.begin());
}

std::string IdFromBytes(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; })) return {};
  std::string out;
  for (const char c : bytes.substr(0, kMaxOddId / 2)) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 0xF];
  }
  return out;
}

std::string IdFromText(std::string_view text, size_t size) {
  if (text.size() == 2 * size && std::all_of(text.begin(), text.end(), IsHex)) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    return lower.find_first_not_of('0') == std::string::npos ? std::string() : lower;
  }
  const std::string bytes = FromBase64(text);
  if (bytes.size() == size) return IdFromBytes(bytes);
  return std::string(text.substr(0, kMaxOddId));
}

}  // namespace teller::ingest::otlp
