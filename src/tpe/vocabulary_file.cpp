#include "tpe/vocabulary_file.hpp"

#include <fcntl.h>
#include <isa-l/crc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/byte_source.hpp"

namespace teller::tpe {
namespace {

constexpr std::string_view kMagic = "teller-tpe-vocabulary ";

uint32_t Checksum(std::string_view header, std::string_view body) {
  const auto crc = [](uint32_t seed, std::string_view bytes) {
    return crc32_gzip_refl(seed, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  };
  return crc(crc(0, header), body);
}

std::string Hex(uint32_t value) {
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", value);
  return text.data();
}

void PutNumber(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>((value & 0x7F) | 0x80));
  out.push_back(static_cast<char>(value));
}

void PutText(std::string_view text, std::string& out) {
  PutNumber(text.size(), out);
  out.append(text);
}

/// Takes numbers and text from the front of bytes; after a failure everything fails.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }
  bool at_end() const { return at_ == bytes_.size(); }
  size_t at() const { return at_; }

  uint64_t Number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 35 && at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }
  std::string_view Text() {
    const uint64_t size = Number();
    if (failed_ || size > bytes_.size() - at_) {
      failed_ = true;
      return {};
    }
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

/// The value of the header's next line "key value", which is taken off.
std::optional<std::string_view> HeaderValue(std::string_view& rest, std::string_view key) {
  const size_t end = rest.substr(0, 200).find('\n');
  if (end == std::string_view::npos || end <= key.size() || rest.substr(0, key.size()) != key ||
      rest[key.size()] != ' ') {
    return std::nullopt;
  }
  const std::string_view value = rest.substr(key.size() + 1, end - key.size() - 1);
  rest.remove_prefix(end + 1);
  return value;
}

std::optional<uint64_t> Decimal(std::optional<std::string_view> text) {
  uint64_t value = 0;
  if (!text || text->empty()) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

struct Header {
  uint64_t classes = 0;
  uint64_t entries = 0;
  uint64_t merges = 0;
  std::string_view body;
};

base::Error Bad(const std::string& path, const std::string& text, const std::string& at = {}) {
  return {base::Code::kBadFormat, text, path, at};
}

base::Result<Header> ReadHeader(std::string_view bytes, const std::string& path) {
  constexpr const char* kMake = "; make one with teller tpe train";
  if (bytes.substr(0, kMagic.size()) != kMagic)
    return Bad(path, std::string("is no vocabulary of Trace Pair Encoding") + kMake);
  std::string_view rest = bytes;
  const auto version = Decimal(HeaderValue(rest, kMagic.substr(0, kMagic.size() - 1)));
  if (!version) return Bad(path, std::string("has no version in its first line") + kMake);
  if (*version != kVocabularyVersion) {
    return base::Error{base::Code::kUnsupported,
                       "is a vocabulary of version " + std::to_string(*version) + ", this program reads version " +
                           std::to_string(kVocabularyVersion) + kMake,
                       path};
  }
  const auto classes = Decimal(HeaderValue(rest, "classes"));
  const auto entries = Decimal(HeaderValue(rest, "entries"));
  const auto merges = Decimal(HeaderValue(rest, "merges"));
  const auto body_bytes = Decimal(HeaderValue(rest, "body-bytes"));
  const size_t covered = bytes.size() - rest.size();
  const auto checksum = HeaderValue(rest, "checksum");
  if (!classes || !entries || !merges || !body_bytes || !checksum) {
    return Bad(path, "header of the vocabulary is damaged or cut short",
               "byte " + std::to_string(bytes.size() - rest.size()));
  }
  if (rest.size() < *body_bytes) {
    return Bad(path, "vocabulary is cut short: body has " + std::to_string(rest.size()) + " bytes of " +
                         std::to_string(*body_bytes) + "; copy it again");
  }
  if (rest.size() > *body_bytes) {
    return Bad(path, std::to_string(rest.size() - *body_bytes) + " bytes follow the vocabulary; copy it again");
  }
  const uint32_t actual = Checksum(bytes.substr(0, covered), rest);
  if (*checksum != Hex(actual)) {
    return Bad(path, "checksum of the vocabulary is " + Hex(actual) + " but its header says otherwise; copy it again");
  }
  return Header{*classes, *entries, *merges, rest};
}

/// Reads one entry of the body.
base::Status ReadEntry(Cursor& in, Vocabulary& vocabulary) {
  const uint64_t kind = in.Number();
  const auto cut = [] { return base::Error{base::Code::kBadFormat, "entry is cut short or a number is too long"}; };
  const auto narrow = [](uint64_t value) { return static_cast<uint32_t>(std::min<uint64_t>(value, 0xFFFFFFFFu)); };
  if (in.failed()) return cut();
  if (kind == static_cast<uint64_t>(EntryKind::kUnknown)) {
    const std::string_view name = in.Text();
    if (in.failed()) return cut();
    const auto added = vocabulary.AddClass(name);
    return added ? base::Status() : base::Status(added.error());
  }
  if (kind == static_cast<uint64_t>(EntryKind::kBase)) {
    const uint32_t class_index = narrow(in.Number());
    const std::string_view name = in.Text();
    if (in.failed()) return cut();
    const auto added = vocabulary.AddBase(class_index, name);
    return added ? base::Status() : base::Status(added.error());
  }
  if (kind == static_cast<uint64_t>(EntryKind::kMerge)) {
    const uint32_t left = narrow(in.Number());
    const uint32_t right = narrow(in.Number());
    const uint32_t delta = narrow(in.Number());
    if (in.failed()) return cut();
    const auto added = vocabulary.AddMerge({left, right, delta});
    return added ? base::Status() : base::Status(added.error());
  }
  return base::Error{base::Code::kBadFormat, "kind of entry is " + std::to_string(kind) + ", expected 0, 1 or 2"};
}

}  // namespace

std::string SerializeVocabulary(const Vocabulary& vocabulary) {
  std::string body;
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    PutNumber(static_cast<uint64_t>(vocabulary.kind(id)), body);
    switch (vocabulary.kind(id)) {
      case EntryKind::kUnknown: PutText(vocabulary.class_name(vocabulary.class_of(id)), body); break;
      case EntryKind::kBase:
        PutNumber(vocabulary.class_of(id), body);
        PutText(vocabulary.name(id), body);
        break;
      case EntryKind::kMerge: {
        const Pair pair = vocabulary.pair(id);
        PutNumber(pair.left, body);
        PutNumber(pair.right, body);
        PutNumber(pair.delta, body);
        break;
      }
    }
  }
  std::string out(kMagic);
  out += std::to_string(kVocabularyVersion) + "\nclasses " + std::to_string(vocabulary.class_count()) + "\nentries " +
         std::to_string(vocabulary.size()) + "\nmerges " + std::to_string(vocabulary.merge_count()) + "\nbody-bytes " +
         std::to_string(body.size()) + "\n";
  const uint32_t checksum = Checksum(out, body);
  return out + "checksum " + Hex(checksum) + "\n" + body;
}

base::Result<Vocabulary> ParseVocabulary(std::string_view bytes, const std::string& path) {
  const auto header = ReadHeader(bytes, path);
  if (!header) return header.error();
  if (header->entries > kMaxEntries) {
    return base::Error{base::Code::kLimit,
                       "vocabulary has " + std::to_string(header->entries) + " entries, at most " +
                           std::to_string(kMaxEntries) + " are read",
                       path};
  }
  Vocabulary vocabulary;
  Cursor in(header->body);
  for (uint64_t id = 0; id < header->entries; ++id) {
    if (const base::Status read = ReadEntry(in, vocabulary); !read) {
      base::Error error = read.error();
      // What is a caller's mistake elsewhere is damage of the file here.
      if (error.code == base::Code::kUsage) error.code = base::Code::kBadFormat;
      error.path = path;
      error.at = "entry " + std::to_string(id);
      return error;
    }
  }
  if (!in.at_end()) return Bad(path, "body goes on after the last entry", "body byte " + std::to_string(in.at()));
  if (vocabulary.class_count() != header->classes || vocabulary.merge_count() != header->merges) {
    return Bad(path, "has " + std::to_string(vocabulary.class_count()) + " classes and " +
                         std::to_string(vocabulary.merge_count()) + " merges, its header says otherwise");
  }
  return vocabulary;
}

namespace {

base::Error CannotWrite(const std::string& path) {
  return {base::Code::kUnreadable, std::string("cannot write the vocabulary: ") + std::strerror(errno), path};
}

/// Writes all of `bytes` and closes. The reason of a failure is in errno.
bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int reason = errno;
      close(fd);
      errno = reason;
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return close(fd) == 0;
}

/// Mode of a new file as the user's mask has it.
mode_t NewFileMode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

/// What a path stands for when all links are followed, also to a file that is not there yet: a link keeps being one.
/// None: the links end nowhere; the reason is in errno.
std::optional<std::filesystem::path> EndOfLinks(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as the system has it
  std::error_code failure;
  for (int i = 0; i < kMostLinks; ++i) {
    if (!std::filesystem::is_symlink(path, failure)) return path;
    const std::filesystem::path next = std::filesystem::read_symlink(path, failure);
    if (failure) break;
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  errno = ELOOP;
  return std::nullopt;
}

}  // namespace

base::Status WriteVocabulary(const Vocabulary& vocabulary, const std::string& path) {
  const std::string bytes = SerializeVocabulary(vocabulary);
  const auto target = EndOfLinks(path);
  if (!target) return CannotWrite(path);
  struct stat known {};
  const bool exists = stat(target->c_str(), &known) == 0;
  // Replacing a file asks for rights to its folder alone; a file that may not be written is not to be replaced.
  if (exists && access(target->c_str(), W_OK) != 0) return CannotWrite(path);
  if (exists && !S_ISREG(known.st_mode)) {
    // Devices and pipes are written to, never replaced.
    const int fd = open(target->c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0 || !WriteAll(fd, bytes)) return CannotWrite(path);
    return {};
  }
  std::string beside = (target->parent_path() / ".teller-vocabulary-XXXXXX").string();
  const int fd = mkstemp(beside.data());
  if (fd < 0) return CannotWrite(path);
  const bool moded = fchmod(fd, exists ? known.st_mode & 07777 : NewFileMode()) == 0;
  if (WriteAll(fd, bytes) && moded && rename(beside.c_str(), target->c_str()) == 0) return {};
  const base::Error error = CannotWrite(path);
  unlink(beside.c_str());
  return error;
}

base::Result<Vocabulary> ReadVocabulary(const std::string& path) {
  auto source = base::OpenRaw(path);
  if (!source) return source.error();
  std::string bytes;
  std::array<char, 1 << 16> buffer;
  while (true) {
    const auto got = (*source)->Read(buffer.data(), buffer.size());
    if (!got) return got.error();
    if (*got == 0) break;
    bytes.append(buffer.data(), *got);
    // Any other file is refused by its first bytes, however large.
    if (bytes.compare(0, kMagic.size(), kMagic) != 0) break;
    if (bytes.size() > kMaxVocabularyBytes) {
      return base::Error{base::Code::kLimit,
                         "vocabulary has more than " + std::to_string(kMaxVocabularyBytes) + " bytes", path};
    }
  }
  return ParseVocabulary(bytes, path);
}

std::string VocabularyJson(const Vocabulary& vocabulary) {
  nlohmann::ordered_json classes = nlohmann::ordered_json::array();
  for (uint32_t i = 0; i < vocabulary.class_count(); ++i) classes.push_back(vocabulary.class_name(i));
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    nlohmann::ordered_json entry = {{"id", id}};
    switch (vocabulary.kind(id)) {
      case EntryKind::kUnknown:
        entry["kind"] = "unknown";
        entry["class"] = vocabulary.class_name(vocabulary.class_of(id));
        break;
      case EntryKind::kBase:
        entry["kind"] = "base";
        entry["class"] = vocabulary.class_name(vocabulary.class_of(id));
        entry["name"] = vocabulary.name(id);
        break;
      case EntryKind::kMerge: {
        const Pair pair = vocabulary.pair(id);
        entry["kind"] = "merge";
        entry["left"] = pair.left;
        entry["right"] = pair.right;
        entry["delta"] = pair.delta;
        break;
      }
    }
    entry["nodes"] = vocabulary.node_count(id);
    entries.push_back(std::move(entry));
  }
  const nlohmann::ordered_json all = {{"format", "teller-tpe-vocabulary"},
                                      {"version", kVocabularyVersion},
                                      {"classes", std::move(classes)},
                                      {"entries", std::move(entries)}};
  // Names are bytes from traces; what is not UTF-8 is shown replaced, the file keeps it as it is.
  return all.dump(1, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace teller::tpe
