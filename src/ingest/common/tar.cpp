#include "ingest/common/tar.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace teller::ingest {

namespace {

constexpr uint64_t kMaxSize = uint64_t{1} << 60;  // of one member: sums of offsets stay inside 64 bits
constexpr size_t kSkipChunk = 1u << 20;

std::string_view Field(std::string_view header, size_t at, size_t n) {
  const std::string_view field = header.substr(at, n);
  return field.substr(0, field.find('\0'));
}

/// A number of a header: octal digits, or big-endian base 256 behind a set top bit (GNU, for 8 GiB and more).
std::optional<uint64_t> Number(std::string_view field) {
  if ((static_cast<unsigned char>(field[0]) & 0x80) != 0) {
    uint64_t value = static_cast<unsigned char>(field[0]) & 0x3F;
    if ((static_cast<unsigned char>(field[0]) & 0x40) != 0) return std::nullopt;  // negative
    for (const char c : field.substr(1)) {
      if (value > kMaxSize) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }
  while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value, 8);
  if (error != std::errc()) return field.empty() || field.front() == '\0' ? std::optional<uint64_t>(0) : std::nullopt;
  return end == field.data() + field.size() || *end == ' ' || *end == '\0' ? std::optional(value) : std::nullopt;
}

/// The sum of all bytes with the sum's own field as blanks.
bool SumIsRight(std::string_view header) {
  const auto told = Number(header.substr(148, 8));
  uint64_t sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  return told && *told == sum;
}

bool IsUstar(std::string_view header) {
  return header.substr(257, 5) == "ustar";
}

/// "path" and "size" of a pax header: records "LENGTH KEY=VALUE\n". False when it is damaged.
bool ReadPax(std::string_view text, std::string& path, std::optional<uint64_t>& size) {
  while (!text.empty() && text.front() != '\0') {
    size_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<size_t>(end - text.data());
    if (error != std::errc() || length > text.size() || length < digits + 3 || *end != ' ' || text[length - 1] != '\n')
      return false;
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    const size_t equal = record.find('=');
    if (equal == std::string_view::npos) return false;
    const std::string_view key = record.substr(0, equal);
    const std::string_view value = record.substr(equal + 1);
    if (key == "path") path = value;
    if (key == "size") {
      uint64_t number = 0;
      const auto [stop, bad] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (bad != std::errc() || stop != value.data() + value.size() || number > kMaxSize) return false;
      size = number;
    }
    text.remove_prefix(length);
  }
  return true;
}

bool IsHidden(std::string_view name) {
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (part.size() > 1 && part.front() == '.' && part != "..") return true;
    name.remove_prefix(std::min(name.size(), part.size() + 1));
  }
  return false;
}

class Reader {
 public:
  explicit Reader(base::ByteSource& source) : source_(source) {}

  base::Result<TarIndex> Read() {
    bool ended = false;  // an empty block was seen, and no header since
    while (out_.damage.empty()) {
      const uint64_t block = at_;
      auto got = Fill(header_, kTarBlock);
      if (!got) return got.error();
      if (*got == 0) {  // archives without the two empty blocks at the end are common
        if (at_ == 0) Damage("is empty");
        if (at_ > 0) out_.damage = source_.damage();
        break;
      }
      if (header_.find_first_not_of('\0') == std::string::npos) {
        ended = true;
        continue;
      }
      if (ended && !LooksLikeTar(header_)) {
        out_.behind = block;
        out_.damage = source_.damage();
        break;
      }
      ended = false;
      if (*got < kTarBlock) {
        Damage("ends in the middle of a header");
        break;
      }
      TELLER_TRY(Member());
    }
    return Finish();
  }

 private:
  base::Status Member() {
    const auto told = Number(std::string_view(header_).substr(124, 12));
    if (!IsUstar(header_) || !SumIsRight(header_) || !told || *told > kMaxSize) {
      Damage("has a damaged header");
      return {};
    }
    const char type = header_[156];
    if (type == 'x' || type == 'L' || type == 'K' || type == 'g') return Extension(type, *told);
    TarMember member{std::string(), at_, size_.value_or(*told)};
    member.name = path_.empty() ? HeaderName() : std::move(path_);
    path_.clear();
    size_.reset();
    const bool has_content = type != '1' && type != '2' && type != '3' && type != '4' && type != '5' && type != '6';
    if (has_content) {
      const auto whole = Skip(member.size);
      if (!whole) return whole.error();
      if (!*whole) Damage("ends in the middle of a member");
    }
    Keep(std::move(member), type);
    return {};
  }

  /// A header about the next member.
  base::Status Extension(char type, uint64_t size) {
    if (size > kMaxTarHeader) {
      Damage("has an extended header of more than 1 MiB");
      return {};
    }
    std::string text;
    auto got = Fill(text, static_cast<size_t>(size));
    if (!got) return got.error();
    const auto padded = SkipPadding(size);
    if (!padded) return padded.error();
    if (*got < size || !*padded) {
      Damage("ends in the middle of a header");
    } else if (type == 'L') {
      path_ = text.substr(0, text.find('\0'));
    } else if (type == 'x' && !ReadPax(text, path_, size_)) {
      Damage("has a damaged extended header");
    }
    if (path_.size() > kMaxTarName) Damage("has a name of more than 4096 bytes");
    return {};
  }

  std::string HeaderName() const {
    const std::string_view prefix =
        header_.substr(257, 6) == std::string_view("ustar\0", 6) ? Field(header_, 345, 155) : std::string_view();
    std::string name(prefix);
    if (!name.empty()) name += '/';
    return name += Field(header_, 0, 100);
  }

  void Keep(TarMember member, char type) {
    while (member.name.starts_with('/') || member.name.starts_with("./"))
      member.name.erase(0, member.name.find('/') + 1);
    if (type == '5' || (type == '0' && member.name.ends_with('/'))) return;
    if (type == '1' || type == '2') {
      ++out_.links;
    } else if (type != '0' && type != '\0' && type != '7') {
      ++out_.special;
    } else if (member.name.empty() || member.name.find('\0') != std::string::npos) {
      ++out_.special;
    } else if (IsHidden(member.name)) {
      ++out_.hidden;
    } else if (out_.members.size() == kMaxTarMembers) {
      Damage("has more than 100,000 members");
    } else {
      out_.members.push_back(std::move(member));
    }
  }

  /// Reads `n` bytes, fewer at the end.
  base::Result<size_t> Fill(std::string& into, size_t n) {
    into.resize(n);
    auto got = source_.Read(into.data(), n);
    if (!got) return got.error();
    at_ += *got;
    into.resize(*got);
    return *got;
  }

  /// Passes over content and what fills its last block. False when the archive ends before.
  base::Result<bool> Skip(uint64_t size) {
    std::string chunk;
    for (uint64_t left = size; left > 0;) {
      auto got = Fill(chunk, static_cast<size_t>(std::min<uint64_t>(left, kSkipChunk)));
      if (!got) return got.error();
      if (*got == 0) return false;
      left -= *got;
    }
    return SkipPadding(size);
  }
  base::Result<bool> SkipPadding(uint64_t size) {
    const auto rest = static_cast<size_t>((kTarBlock - size % kTarBlock) % kTarBlock);
    std::string chunk;
    auto got = Fill(chunk, rest);
    if (!got) return got.error();
    return *got == rest;
  }

  void Damage(std::string_view what) {
    if (!out_.damage.empty()) return;
    out_.damage = what;
    if (!source_.damage().empty()) out_.damage += "; " + std::string(source_.damage());
  }

  TarIndex Finish() {
    std::map<std::string_view, size_t> last;
    for (size_t i = 0; i < out_.members.size(); ++i) last[out_.members[i].name] = i;
    std::vector<TarMember> kept;
    for (size_t i = 0; i < out_.members.size(); ++i) {
      if (last.at(out_.members[i].name) == i) {
        kept.push_back(out_.members[i]);
      } else {
        ++out_.overwritten;
      }
    }
    out_.members = std::move(kept);
    return std::move(out_);
  }

  base::ByteSource& source_;
  uint64_t at_ = 0;
  std::string header_;
  std::string path_;              // of the next member, from an extended header
  std::optional<uint64_t> size_;  // likewise
  TarIndex out_;
};

}  // namespace

bool LooksLikeTar(std::string_view head) {
  return head.size() >= kTarBlock && IsUstar(head) && SumIsRight(head.substr(0, kTarBlock));
}

base::Result<TarIndex> ReadTarIndex(base::ByteSource& source) {
  return Reader(source).Read();
}

}  // namespace teller::ingest
