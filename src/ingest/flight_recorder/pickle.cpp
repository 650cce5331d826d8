// A pickle is a program for a stack machine. This one knows the instructions that build plain data and no others, so
// that a hostile dump can at worst be refused.
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "ingest/flight_recorder/notation.hpp"

namespace teller::ingest::flight_recorder {

namespace {

using base::Code;
using base::Error;

constexpr size_t kMaxNumberText = 32;  // longer decimal integers fit no int64

/// Name of an opcode that names, calls or restores an object; empty for others.
std::string_view RefusedName(unsigned char opcode) {
  switch (opcode) {
    case 'c': return "GLOBAL";
    case 0x93: return "STACK_GLOBAL";
    case 'R': return "REDUCE";
    case 'b': return "BUILD";
    case 'i': return "INST";
    case 'o': return "OBJ";
    case 0x81: return "NEWOBJ";
    case 0x92: return "NEWOBJ_EX";
    case 0x82: return "EXT1";
    case 0x83: return "EXT2";
    case 0x84: return "EXT4";
    case 'P': return "PERSID";
    case 'Q': return "BINPERSID";
    case 0x97: return "NEXT_BUFFER";
    case 0x98: return "READONLY_BUFFER";
    default: return {};
  }
}

void AppendUtf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

/// Digits of \xHH, \uHHHH, \UHHHHHHHH that `text` begins with behind the letter; 0 when they are not all there.
size_t HexEscape(std::string_view text, uint32_t& code) {
  const size_t digits = text[0] == 'x' ? 2 : text[0] == 'u' ? 4 : text[0] == 'U' ? 8 : 0;
  if (digits == 0 || text.size() < 1 + digits) return 0;
  const auto [end, fault] = std::from_chars(text.data() + 1, text.data() + 1 + digits, code, 16);
  return fault == std::errc() && end == text.data() + 1 + digits && code <= 0x10FFFF ? digits : 0;
}

/// A text of protocol 0. UNICODE is Latin-1 with \u escapes only; STRING is a literal in quotes.
std::string Unescape(std::string_view text, bool literal) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    uint32_t code = static_cast<unsigned char>(text[i]);
    if (text[i] == '\\' && i + 1 < text.size()) {
      const std::string_view rest = text.substr(i + 1);
      uint32_t escaped = 0;
      const size_t digits = (literal || rest[0] != 'x') ? HexEscape(rest, escaped) : 0;
      if (digits > 0) {
        code = escaped;
        i += digits + 1;
      } else if (literal) {
        code = rest[0] == 'n'   ? '\n'
               : rest[0] == 't' ? '\t'
               : rest[0] == 'r' ? '\r'
                                : static_cast<unsigned char>(rest[0]);
        ++i;
      }
    }
    AppendUtf8(code, out);
  }
  return out;
}

class Machine {
 public:
  explicit Machine(std::string_view bytes) : bytes_(bytes) {}

  base::Result<ValueTree> Run(PickleEnd& end) {
    while (true) {
      opcode_at_ = at_;
      if (at_ >= bytes_.size()) return Bad("the pickle ends before its end mark; its writer died");
      if (tree_.full()) return Error{Code::kLimit, "the dump holds more values than a recorder can keep", {}, Place()};
      const auto opcode = static_cast<unsigned char>(bytes_[at_++]);
      if (opcode == '.') break;
      if (const std::string_view name = RefusedName(opcode); !name.empty()) {
        return Error{Code::kUnsupported,
                     "the pickle wants to build an object (opcode " + std::string(name) +
                         "); only plain data is read and nothing is executed",
                     {},
                     Place()};
      }
      if (!Step(opcode)) {
        return Bad(why_ != nullptr ? why_ : "the pickle is damaged: an instruction lacks its operands");
      }
    }
    if (stack_.empty()) return Bad("the pickle is empty");
    tree_.root = stack_.back();
    end.trailing = bytes_.size() - at_;
    return std::move(tree_);
  }

 private:
  std::string Place() const { return "byte " + std::to_string(opcode_at_); }
  Error Bad(const char* what) const { return {Code::kBadFormat, what, {}, Place()}; }
  bool Fail(const char* why) {
    why_ = why;
    return false;
  }

  bool Take(size_t n, std::string_view& out) {
    if (n > bytes_.size() - at_) return false;
    out = bytes_.substr(at_, n);
    at_ += n;
    return true;
  }
  /// Little-endian unsigned number of n <= 8 bytes.
  bool Number(size_t n, uint64_t& value) {
    std::string_view raw;
    if (!Take(n, raw)) return false;
    value = 0;
    for (size_t i = n; i-- > 0;) value = value << 8 | static_cast<unsigned char>(raw[i]);
    return true;
  }
  /// Text with its length before it.
  bool Counted(size_t length_bytes, std::string_view& out) {
    uint64_t n = 0;
    return Number(length_bytes, n) && n <= bytes_.size() && Take(static_cast<size_t>(n), out);
  }
  bool Line(std::string_view& out) {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) return false;
    out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }

  bool Push(ValueId id) {
    stack_.push_back(id);
    return true;
  }
  /// Place in the stack above which there is no mark: what lies below belongs to an open group.
  size_t Floor() const { return marks_.empty() ? 0 : marks_.back(); }
  bool Pop(ValueId& id) {
    if (stack_.size() <= Floor()) return Fail("the pickle is damaged: it takes a value that is not there");
    id = stack_.back();
    stack_.pop_back();
    return true;
  }
  bool Top(ValueId& id) const {
    if (stack_.size() <= Floor()) return false;
    id = stack_.back();
    return true;
  }
  bool PopMark(size_t& begin) {
    if (marks_.empty()) return Fail("the pickle is damaged: it closes a group that was not opened");
    begin = marks_.back();
    marks_.pop_back();
    return true;
  }

  /// Moves everything above `begin` into a container.
  bool MoveInto(ValueId container, size_t begin) {
    if (tree_.kind(container) == ValueKind::kMap && (stack_.size() - begin) % 2 != 0)
      return Fail("the pickle is damaged: a dict has a key without a value");
    for (size_t i = begin; i < stack_.size(); ++i) tree_.Append(container, stack_[i]);
    stack_.resize(begin);
    return true;
  }
  /// Collects the group since the last mark into a new container.
  bool Collect(ValueId container) {
    size_t begin = 0;
    return PopMark(begin) && MoveInto(container, begin) && Push(container);
  }
  /// Adds the group since the last mark to the container below it.
  bool Extend(ValueKind kind) {
    size_t begin = 0;
    ValueId container = 0;
    if (!PopMark(begin)) return false;
    if (begin <= Floor()) return Fail("the pickle is damaged: it fills a container that is not there");
    container = stack_[begin - 1];
    if (tree_.kind(container) != kind) return Fail("the pickle is damaged: it fills what is no container");
    return MoveInto(container, begin);
  }
  bool Tuple(size_t n) {
    if (stack_.size() < Floor() + n) return Fail("the pickle is damaged: it takes a value that is not there");
    const ValueId list = tree_.AddList();
    return MoveInto(list, stack_.size() - n) && Push(list);
  }
  bool AddOne(ValueKind kind) {
    ValueId value = 0;
    ValueId key = 0;
    ValueId container = 0;
    if (!Pop(value) || (kind == ValueKind::kMap && !Pop(key)) || !Top(container)) return false;
    if (tree_.kind(container) != kind) return Fail("the pickle is damaged: it fills what is no container");
    if (kind == ValueKind::kMap) tree_.Append(container, key);
    tree_.Append(container, value);
    return true;
  }

  /// Writers count their memo up, so an index beyond the bytes of the file is none of theirs.
  bool Put(uint64_t index) {
    ValueId id = 0;
    if (!Top(id)) return Fail("the pickle is damaged: it keeps a value that is not there");
    if (index >= bytes_.size()) return Fail("the pickle is damaged: a kept value has an impossible number");
    if (index >= memo_.size()) memo_.resize(static_cast<size_t>(index) + 1, kNothing);
    memo_[static_cast<size_t>(index)] = id;
    return true;
  }
  bool Get(uint64_t index) {
    if (index >= memo_.size() || memo_[static_cast<size_t>(index)] == kNothing)
      return Fail("the pickle is damaged: it recalls a value that was not kept");
    return Push(memo_[static_cast<size_t>(index)]);
  }
  bool Index(uint64_t& index) {
    std::string_view line;
    if (!Line(line) || line.empty()) return false;
    const auto [end, fault] = std::from_chars(line.data(), line.data() + line.size(), index);
    return fault == std::errc() && end == line.data() + line.size();
  }

  /// Two's complement, little-endian, any length.
  bool Long(std::string_view raw) {
    if (raw.size() > 8) {
      // Sign bytes beyond the eighth carry no value.
      const bool minus = (static_cast<unsigned char>(raw.back()) & 0x80) != 0;
      const char fill = minus ? '\xFF' : '\0';
      while (raw.size() > 8 && raw.back() == fill) raw.remove_suffix(1);
      const bool fits = raw.size() == 8 && ((static_cast<unsigned char>(raw[7]) & 0x80) != 0) == minus;
      if (!fits) return Push(tree_.AddReal(minus ? -1e300 : 1e300));
    }
    uint64_t value = !raw.empty() && (static_cast<unsigned char>(raw.back()) & 0x80) != 0 ? ~uint64_t{0} : 0;
    for (size_t i = raw.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(raw[i]);
    return Push(tree_.AddInteger(static_cast<int64_t>(value)));
  }
  bool DecimalLine(bool is_long) {
    std::string_view line;
    if (!Line(line)) return false;
    if (!is_long && (line == "00" || line == "01")) return Push(tree_.AddBool(line == "01"));
    if (is_long && !line.empty() && line.back() == 'L') line.remove_suffix(1);
    if (line.empty()) return false;
    int64_t value = 0;
    const auto [end, fault] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (fault == std::errc::result_out_of_range || line.size() > kMaxNumberText)
      return Push(tree_.AddReal(line.front() == '-' ? -1e300 : 1e300));
    if (fault != std::errc() || end != line.data() + line.size())
      return Fail("the pickle is damaged: a number is none");
    return Push(tree_.AddInteger(value));
  }
  bool RealLine() {
    std::string_view line;
    if (!Line(line) || line.size() > 64) return false;
    const std::string text(line);
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || end != text.c_str() + text.size()) return Fail("the pickle is damaged: a number is none");
    return Push(tree_.AddReal(value));
  }
  bool BinaryReal() {
    std::string_view raw;
    if (!Take(8, raw)) return false;
    uint64_t bits = 0;
    for (const char c : raw) bits = bits << 8 | static_cast<unsigned char>(c);
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return Push(tree_.AddReal(value));
  }
  bool QuotedLine() {
    std::string_view line;
    if (!Line(line)) return false;
    if (line.size() < 2 || line.front() != line.back() || (line.front() != '\'' && line.front() != '"'))
      return Fail("the pickle is damaged: a text has no quotes");
    return Push(tree_.AddOwnText(Unescape(line.substr(1, line.size() - 2), true)));
  }
  bool UnicodeLine() {
    std::string_view line;
    return Line(line) && Push(tree_.AddOwnText(Unescape(line, false)));
  }
  bool BinaryText(size_t length_bytes) {
    std::string_view text;
    return Counted(length_bytes, text) && Push(tree_.AddText(text));
  }
  bool BinaryInteger(size_t bytes, bool is_signed) {
    uint64_t value = 0;
    if (!Number(bytes, value)) return false;
    return Push(tree_.AddInteger(is_signed ? static_cast<int32_t>(value) : static_cast<int64_t>(value)));
  }
  bool CountedLong(size_t length_bytes) {
    std::string_view raw;
    return Counted(length_bytes, raw) && Long(raw);
  }
  bool Skip(size_t n) {
    std::string_view raw;
    return Take(n, raw);
  }

  bool Step(unsigned char opcode) {
    if (opcode < 0x80)
      return opcode == '(' || opcode == '0' || opcode == '1' || opcode == '2' ? StackStep(opcode) : OldStep(opcode);
    return NewStep(opcode);
  }

  bool StackStep(unsigned char opcode) {
    ValueId id = 0;
    size_t begin = 0;
    switch (opcode) {
      case '(': marks_.push_back(stack_.size()); return true;
      case '0':
        if (stack_.size() > Floor()) return Pop(id);
        return PopMark(begin);  // POP of a mark
      case '1':
        if (!PopMark(begin)) return false;
        stack_.resize(begin);
        return true;
      default: return Top(id) && Push(id);
    }
  }

  /// Protocols 0 and 1.
  bool OldStep(unsigned char opcode) {
    uint64_t index = 0;
    switch (opcode) {
      case 'N': return Push(tree_.AddNull());
      case 'I': return DecimalLine(false);
      case 'L': return DecimalLine(true);
      case 'F': return RealLine();
      case 'G': return BinaryReal();
      case 'J': return BinaryInteger(4, true);
      case 'K': return BinaryInteger(1, false);
      case 'M': return BinaryInteger(2, false);
      case 'S': return QuotedLine();
      case 'V': return UnicodeLine();
      case 'T':
      case 'X':
      case 'B': return BinaryText(4);
      case 'U':
      case 'C': return BinaryText(1);
      case ']':
      case ')': return Push(tree_.AddList());
      case '}': return Push(tree_.AddMap());
      case 'l':
      case 't': return Collect(tree_.AddList());
      case 'd': return Collect(tree_.AddMap());
      case 'a': return AddOne(ValueKind::kList);
      case 'e': return Extend(ValueKind::kList);
      case 's': return AddOne(ValueKind::kMap);
      case 'u': return Extend(ValueKind::kMap);
      case 'g': return Index(index) && Get(index);
      case 'h': return Number(1, index) && Get(index);
      case 'j': return Number(4, index) && Get(index);
      case 'p': return Index(index) && Put(index);
      case 'q': return Number(1, index) && Put(index);
      case 'r': return Number(4, index) && Put(index);
      default: return Fail("the pickle is damaged: an unknown instruction");
    }
  }

  /// Protocols 2 to 5.
  bool NewStep(unsigned char opcode) {
    switch (opcode) {
      case 0x80: return Skip(1);  // PROTO
      case 0x95: return Skip(8);  // FRAME: how much to read ahead
      case 0x85: return Tuple(1);
      case 0x86: return Tuple(2);
      case 0x87: return Tuple(3);
      case 0x88: return Push(tree_.AddBool(true));
      case 0x89: return Push(tree_.AddBool(false));
      case 0x8a: return CountedLong(1);
      case 0x8b: return CountedLong(4);
      case 0x8c: return BinaryText(1);
      case 0x8d:
      case 0x8e:
      case 0x96: return BinaryText(8);
      case 0x8f: return Push(tree_.AddList());  // a set
      case 0x90: return Extend(ValueKind::kList);
      case 0x91: return Collect(tree_.AddList());
      case 0x94: return Put(memo_.size());
      default: return Fail("the pickle is damaged: an unknown instruction");
    }
  }

  static constexpr ValueId kNothing = ~ValueId{0};
  std::string_view bytes_;
  size_t at_ = 0;
  size_t opcode_at_ = 0;
  const char* why_ = nullptr;
  ValueTree tree_;
  std::vector<ValueId> stack_;
  std::vector<size_t> marks_;
  std::vector<ValueId> memo_;
};

}  // namespace

base::Result<ValueTree> ParsePickle(std::string_view bytes, PickleEnd& end) {
  return Machine(bytes).Run(end);
}

bool LooksLikePickle(std::string_view head) {
  if (head.size() > 1 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return true;
  // Protocols 0 and 1 have no mark: "(dp0", "(lp0" and "}q\0", "]q\0" are how a dict or a list begins.
  if (head.size() < 4) return false;
  const bool text =
      head[0] == '(' && (head[1] == 'd' || head[1] == 'l') && head[2] == 'p' && head[3] >= '0' && head[3] <= '9';
  const bool binary = (head[0] == '}' || head[0] == ']') && head[1] == 'q' && head[2] == '\0' && head[3] == '(';
  return text || binary;
}

}  // namespace teller::ingest::flight_recorder
