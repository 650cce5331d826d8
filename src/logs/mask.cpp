#include "logs/mask.hpp"

#include <algorithm>
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

constexpr size_t kMaxIdLength = 256;  // so that a long run of hex letters is looked at once, not from each of them

/// A UUID, or a long run of hex digits and dashes with both letters and digits: request ids, hashes.
size_t IdLength(std::string_view s) {
  if (s.size() < 8) return 0;
  size_t n = 0;
  size_t digits = 0;
  size_t letters = 0;
  while (n < std::min(s.size(), kMaxIdLength) && (IsHex(s[n]) || (s[n] == '-' && n > 0))) {
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

/// Length of a unit of time at the front, not followed by more of a word.
size_t UnitLength(std::string_view s) {
  if (s.empty() || (!IsAlpha(s[0]) && s[0] != '\xc2')) return 0;
  static constexpr std::array<std::string_view, 9> kUnits = {"ms",  "us", "\xc2\xb5s", "ns", "s",
                                                             "min", "m",  "h",         "sec"};
  for (const auto unit : kUnits) {
    if (s.substr(0, unit.size()) != unit) continue;
    const char after = s.size() > unit.size() ? s[unit.size()] : '\0';
    if (!(IsAlpha(after) || IsDigit(after) || after == '/')) return unit.size();
  }
  return 0;
}

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
  const size_t unit = UnitLength(s.substr(n));
  if (unit > 0) {
    out.length = n + unit;
    out.kind = Kind::kDuration;
  }
  return out;
}

/// Length of an integer at the front that cannot be the begin of anything else; 0 when it can.
size_t IntegerRun(std::string_view s) {
  size_t n = 0;
  while (n < s.size() && IsDigit(s[n])) ++n;
  if (n == s.size()) return n;
  const char after = s[n];
  if (after == ',') return n + 1 < s.size() && IsDigit(s[n + 1]) ? 0 : n;
  return after == ')' || after == ']' || after == ';' || after == '/' ? n : 0;
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

bool OpensQuote(std::string_view text, size_t i) {
  if (text[i] != '\'' && text[i] != '"') return false;
  return i == 0 || std::string_view(" =([{,:\t").find(text[i - 1]) != std::string_view::npos;
}

/// Past the quotation that opens at `i`; 0 when none does, or when it is not closed as one.
size_t QuoteEnd(std::string_view text, size_t i) {
  const char quote = text[i];
  for (size_t k = i + 1; k < text.size(); ++k) {
    if (text[k] == '\\') {
      ++k;
    } else if (text[k] == quote) {
      const bool closed =
          k + 1 >= text.size() || std::string_view(" ,)]}.;:\t").find(text[k + 1]) != std::string_view::npos;
      if (closed) return k + 1;
    }
  }
  return 0;
}

bool HasBlank(std::string_view text) {
  return text.find_first_of(" \t") != std::string_view::npos;
}

/// Past a list of numbers, "[1, 2, 3]"; 0 when there is none, or only one number.
size_t ListEnd(std::string_view text, size_t i) {
  const char close = text[i] == '[' ? ']' : ')';
  size_t commas = 0;
  for (size_t k = i + 1; k < text.size(); ++k) {
    const char c = text[k];
    if (c == close) return commas > 0 ? k + 1 : 0;
    commas += c == ',' ? 1 : 0;
    if (!IsDigit(c) && c != ',' && c != ' ' && c != '.' && c != '-') return 0;
  }
  return 0;
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

size_t WordWalker::EndOfUnit(size_t i) {
  const char c = rest_[i];
  if (c != '\'' && c != '"') return ListEnd(rest_, i);
  bool& open = unclosed_[c == '"' ? 1 : 0];
  if (open || !OpensQuote(rest_, i)) return 0;
  const size_t end = QuoteEnd(rest_, i);
  open = end == 0;
  return end;
}

std::string MaskWord(std::string_view word, std::vector<Hole>& holes) {
  std::string out;
  MaskWordInto(word, out, &holes);
  return out;
}

void MaskWordInto(std::string_view word, std::string& out, std::vector<Hole>* holes) {
  out.clear();
  size_t i = 0;
  bool unclosed = false;
  const auto take = [&](Kind kind, size_t length) {
    out += Placeholder(kind);
    if (holes != nullptr) holes->push_back({kind, word.substr(i, length)});
    i += length;
  };
  while (i < word.size()) {
    const char c = word[i];
    const char before = i > 0 ? word[i - 1] : '\0';
    const bool boundary = !(IsAlpha(before) || IsDigit(before) || before == '_');
    const std::string_view rest = word.substr(i);
    if (IsDigit(c)) {
      if (const size_t run = IntegerRun(rest); run > 0 && boundary) {
        take(Kind::kInteger, run);
        continue;
      }
      const size_t hex =
          boundary && c == '0' && rest.size() > 2 && (rest[1] == 'x' || rest[1] == 'X') ? HexRun(rest.substr(2)) : 0;
      if (hex > 0) {
        take(Kind::kHex, 2 + hex);
        continue;
      }
      if (boundary) {
        if (const size_t id = IdLength(rest); id > 0) {
          take(Kind::kId, id);
          continue;
        }
        if (const size_t address = AddressLength(rest); address > 0) {
          take(Kind::kAddress, address);
          continue;
        }
      }
      const Number number = NumberLength(rest);
      take(number.kind, number.length);
      continue;
    }
    if (boundary && IsHex(c)) {
      if (const size_t id = IdLength(rest); id > 0) {
        take(Kind::kId, id);
        continue;
      }
    } else if (c == '/' && boundary) {
      if (const size_t path = PathLength(rest); path > 0) {
        take(Kind::kPath, path);
        continue;
      }
    } else if (c == '-' && (before == '\0' || before == '=' || before == '(' || before == '[')) {
      if (const Number negative = NumberLength(rest.substr(1)); negative.length > 0) {
        take(negative.kind, negative.length + 1);
        continue;
      }
    } else if ((c == '\'' || c == '"') && !unclosed && OpensQuote(word, i)) {
      const size_t end = QuoteEnd(word, i);
      unclosed = end == 0;
      const std::string_view inside = end > i + 2 ? word.substr(i + 1, end - i - 2) : std::string_view();
      // A value in quotes that has no form of its own, or holds blanks.
      if (!inside.empty() && (HasBlank(inside) || std::none_of(inside.begin(), inside.end(), IsDigit))) {
        out.push_back(c);
        ++i;
        take(Kind::kText, inside.size());
        continue;
      }
    } else if (c == '[' || c == '(') {
      if (const size_t end = ListEnd(word, i); end > 0) {
        out.push_back(c);
        ++i;
        take(Kind::kText, end - i - 1);
        continue;
      }
    }
    out.push_back(c);
    ++i;
  }
}

}  // namespace teller::logs
