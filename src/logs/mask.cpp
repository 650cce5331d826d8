#include "logs/mask.hpp"

#include <array>

namespace teller::logs {

namespace {

using Kind = trace::LogParameter::Kind;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsAlpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool IsHex(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

size_t HexRun(std::string_view s) {
  size_t n = 0;
  while (n < s.size() && IsHex(s[n])) ++n;
  return n;
}

/// A UUID, or a long run of hex digits and dashes with both letters and digits: request ids, hashes.
size_t IdLength(std::string_view s) {
  size_t n = 0;
  size_t digits = 0;
  size_t letters = 0;
  while (n < s.size() && (IsHex(s[n]) || (s[n] == '-' && n > 0))) {
    digits += IsDigit(s[n]) ? 1 : 0;
    letters += IsAlpha(s[n]) ? 1 : 0;
    ++n;
  }
  if (n < s.size() && (IsAlpha(s[n]) || IsDigit(s[n]) || s[n] == '_')) return 0;
  return n >= 8 && digits >= 2 && letters >= 1 ? n : 0;
}

/// "10.0.0.1:4711", "[::1]:80" are written many ways; the dotted form with a port is the one logs have.
size_t AddressLength(std::string_view s) {
  size_t n = 0;
  for (int part = 0; part < 4; ++part) {
    size_t digits = 0;
    while (n < s.size() && IsDigit(s[n]) && digits < 3) ++n, ++digits;
    if (digits == 0) return 0;
    if (part < 3 && (n >= s.size() || s[n++] != '.')) return 0;
  }
  if (n < s.size() && s[n] == '.') return 0;
  if (n + 1 < s.size() && s[n] == ':' && IsDigit(s[n + 1])) {
    ++n;
    while (n < s.size() && IsDigit(s[n])) ++n;
  }
  return n;
}

struct Number {
  size_t length = 0;
  Kind kind = Kind::kInteger;
};

/// "12", "1,024", "3.5e-3", "27.2ms", "35%".
Number NumberLength(std::string_view s) {
  Number out;
  size_t n = 0;
  bool fraction = false;
  while (n < s.size() && (IsDigit(s[n]) || (s[n] == ',' && n + 3 < s.size() && IsDigit(s[n + 1]) && IsDigit(s[n + 2]) &&
                                            IsDigit(s[n + 3]))))
    ++n;
  if (n == 0) return out;
  while (n + 1 < s.size() && s[n] == '.' && IsDigit(s[n + 1])) {  // also 1.2.3: a version, or llama.cpp's clock
    fraction = true;
    ++n;
    while (n < s.size() && IsDigit(s[n])) ++n;
  }
  if (n + 2 < s.size() && (s[n] == 'e' || s[n] == 'E') && (s[n + 1] == '-' || s[n + 1] == '+') && IsDigit(s[n + 2])) {
    n += 2;
    while (n < s.size() && IsDigit(s[n])) ++n;
    fraction = true;
  }
  out.length = n;
  out.kind = fraction ? Kind::kFloat : Kind::kInteger;
  static constexpr std::array<std::string_view, 9> kUnits = {"ms",  "us", "\xc2\xb5s", "ns", "s",
                                                             "min", "m",  "h",         "sec"};
  for (const auto unit : kUnits) {
    const bool ends = n + unit.size() >= s.size() ||
                      !(IsAlpha(s[n + unit.size()]) || IsDigit(s[n + unit.size()]) || s[n + unit.size()] == '/');
    if (s.substr(n, unit.size()) == unit && ends) {
      out.length = n + unit.size();
      out.kind = Kind::kDuration;
      return out;
    }
  }
  return out;
}

size_t PathLength(std::string_view s) {
  if (s.size() < 4 || s[0] != '/' || !(IsAlpha(s[1]) || s[1] == '.' || s[1] == '_' || IsDigit(s[1]))) return 0;
  size_t n = 0;
  size_t slashes = 0;
  while (n < s.size() &&
         (IsAlpha(s[n]) || IsDigit(s[n]) || std::string_view("/._-+@~:").find(s[n]) != std::string_view::npos)) {
    slashes += s[n] == '/' ? 1 : 0;
    ++n;
  }
  return slashes >= 2 ? n : 0;
}

}  // namespace

std::string_view Placeholder(Kind kind) {
  switch (kind) {
    case Kind::kText: return "<*>";
    case Kind::kInteger: return "<int>";
    case Kind::kFloat: return "<float>";
    case Kind::kHex: return "<hex>";
    case Kind::kAddress: return "<addr>";
    case Kind::kPath: return "<path>";
    case Kind::kId: return "<id>";
    case Kind::kDuration: return "<dur>";
  }
  return "<*>";
}

std::string MaskWord(std::string_view word, std::vector<Hole>& holes) {
  std::string out;
  size_t i = 0;
  const auto take = [&](Kind kind, size_t length) {
    out += Placeholder(kind);
    holes.push_back({kind, word.substr(i, length)});
    i += length;
  };
  while (i < word.size()) {
    const std::string_view rest = word.substr(i);
    const char before = i > 0 ? word[i - 1] : '\0';
    const bool boundary = !(IsAlpha(before) || IsDigit(before) || before == '_');
    if (boundary && rest.size() > 2 && rest[0] == '0' && (rest[1] == 'x' || rest[1] == 'X') &&
        HexRun(rest.substr(2)) > 0) {
      take(Kind::kHex, 2 + HexRun(rest.substr(2)));
    } else if (const size_t id = boundary ? IdLength(rest) : 0; id > 0) {
      take(Kind::kId, id);
    } else if (const size_t path = boundary ? PathLength(rest) : 0; path > 0) {
      take(Kind::kPath, path);
    } else if (const size_t address = boundary ? AddressLength(rest) : 0; address > 0) {
      take(Kind::kAddress, address);
    } else if (const Number number = NumberLength(rest); number.length > 0) {
      take(number.kind, number.length);
    } else if (const Number negative = NumberLength(rest.substr(1));
               rest[0] == '-' && negative.length > 0 &&
               (before == '\0' || before == '=' || before == '(' || before == '[')) {
      take(negative.kind, negative.length + 1);
    } else {
      out.push_back(rest[0]);
      ++i;
    }
  }
  return out;
}

}  // namespace teller::logs
