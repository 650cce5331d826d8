#include "base/byte_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/decompress.hpp"

namespace teller::base {

namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(fd_); }
  int get() const { return fd_; }

 private:
  int fd_;
};

Result<size_t> ReadAll(int fd, const std::string& path, uint64_t at, char* into, size_t n) {
  size_t got = 0;
  while (got < n) {
    const ssize_t r = ::pread(fd, into + got, n - got, static_cast<off_t>(at + got));
    if (r == 0) break;
    if (r < 0) {
      if (errno == EINTR) continue;
      return Error{Code::kUnreadable, std::string("cannot read: ") + std::strerror(errno), path};
    }
    got += static_cast<size_t>(r);
  }
  return got;
}

/// Bytes [at, end) of a file; end = UINT64_MAX for all of it. Reads with a position of its own.
class RawFile : public ByteSource {
 public:
  RawFile(std::unique_ptr<Descriptor> fd, std::string path, uint64_t at, uint64_t end)
      : fd_(std::move(fd)), path_(std::move(path)), begin_(at), at_(at), end_(end) {}

  Result<size_t> Read(char* into, size_t n) override {
    n = static_cast<size_t>(std::min<uint64_t>(n, end_ - at_));
    auto got = ReadAll(fd_->get(), path_, at_, into, n);
    if (!got) return got.error();
    at_ += *got;
    return *got;
  }
  uint64_t consumed() const override { return at_ - begin_; }

 private:
  std::unique_ptr<Descriptor> fd_;
  std::string path_;
  uint64_t begin_;
  uint64_t at_;
  uint64_t end_;
};

/// A place in a file, as FileRegion writes it.
struct Region {
  std::string path;
  uint64_t offset = 0;
  uint64_t end = UINT64_MAX;
};

Region ParseRegion(const std::string& path) {
  const size_t mark = path.find('\0');
  if (mark == std::string::npos) return {path};
  Region region{path.substr(0, mark)};
  uint64_t size = 0;
  const char* const last = path.data() + path.size();
  const auto [next, error] = std::from_chars(path.data() + mark + 1, last, region.offset);
  if (error == std::errc() && next != last) std::from_chars(next + 1, last, size);
  region.end = region.offset + size;
  return region;
}

class Memory : public ByteSource {
 public:
  explicit Memory(std::string_view text) : text_(text) {}
  Result<size_t> Read(char* into, size_t n) override {
    const size_t take = std::min(n, text_.size() - at_);
    if (take > 0) std::memcpy(into, text_.data() + at_, take);
    at_ += take;
    return take;
  }
  uint64_t consumed() const override { return at_; }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string FileRegion(const std::string& path, uint64_t offset, uint64_t size) {
  return path + '\0' + std::to_string(offset) + '+' + std::to_string(size);
}

Result<std::unique_ptr<ByteSource>> OpenRaw(const std::string& name) {
  const Region region = ParseRegion(name);
  const std::string& path = region.path;
  // Opening a pipe that nobody writes to would block for ever.
  const int raw = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (raw < 0) {
    const Code code = errno == ENOENT ? Code::kNotFound : Code::kUnreadable;
    return Error{code, std::string("cannot open: ") + std::strerror(errno), path};
  }
  auto fd = std::make_unique<Descriptor>(raw);
  struct stat info = {};
  if (::fstat(raw, &info) == 0 && !S_ISREG(info.st_mode)) {
    return Error{Code::kUnreadable, S_ISDIR(info.st_mode) ? "is a directory" : "is not a regular file", path};
  }
  return std::unique_ptr<ByteSource>(std::make_unique<RawFile>(std::move(fd), path, region.offset, region.end));
}

Result<std::unique_ptr<ByteSource>> OpenFile(const std::string& path) {
  auto raw = OpenRaw(path);
  if (!raw) return raw.error();
  return Decompressed(std::move(*raw));
}

uint64_t BytesOnDisk(const std::string& path) {
  const Region region = ParseRegion(path);
  if (region.end != UINT64_MAX) return region.end - region.offset;
  struct stat info = {};
  return ::stat(region.path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

std::unique_ptr<ByteSource> OpenMemory(std::string_view text) {
  return std::make_unique<Memory>(text);
}

}  // namespace teller::base
