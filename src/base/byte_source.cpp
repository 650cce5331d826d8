#include "base/byte_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace teller::base {

namespace {

constexpr size_t kCompressedChunk = 256u << 10;

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

Result<size_t> ReadAll(int fd, const std::string& path, char* into, size_t n) {
  size_t got = 0;
  while (got < n) {
    const ssize_t r = ::read(fd, into + got, n - got);
    if (r == 0) break;
    if (r < 0) {
      if (errno == EINTR) continue;
      return Error{Code::kUnreadable, std::string("cannot read: ") + std::strerror(errno), path};
    }
    got += static_cast<size_t>(r);
  }
  return got;
}

class PlainFile : public ByteSource {
 public:
  PlainFile(std::unique_ptr<Descriptor> fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Result<size_t> Read(char* into, size_t n) override {
    auto got = ReadAll(fd_->get(), path_, into, n);
    if (got) consumed_ += *got;
    return got;
  }
  uint64_t consumed() const override { return consumed_; }

 private:
  std::unique_ptr<Descriptor> fd_;
  std::string path_;
  uint64_t consumed_ = 0;
};

class GzipFile : public ByteSource {
 public:
  GzipFile(std::unique_ptr<Descriptor> fd, std::string path)
      : fd_(std::move(fd)), path_(std::move(path)), input_(kCompressedChunk) {
    TELLER_CHECK(inflateInit2(&z_, 16 + MAX_WBITS) == Z_OK);
  }
  ~GzipFile() override { inflateEnd(&z_); }

  Result<size_t> Read(char* into, size_t n) override {
    size_t got = 0;
    while (got < n && !done_) {
      if (z_.avail_in == 0) {
        auto more = ReadAll(fd_->get(), path_, reinterpret_cast<char*>(input_.data()), input_.size());
        if (!more) return more.error();
        if (*more == 0) {
          done_ = true;
          if (!between_members_) damage_ = "gzip data ends in the middle of a member";
          break;
        }
        consumed_ += *more;
        z_.next_in = input_.data();
        z_.avail_in = static_cast<uInt>(*more);
      }
      z_.next_out = reinterpret_cast<Bytef*>(into + got);
      z_.avail_out = static_cast<uInt>(std::min<size_t>(n - got, 1u << 30));
      const uInt room = z_.avail_out;
      between_members_ = false;
      const int rc = inflate(&z_, Z_NO_FLUSH);
      got += room - z_.avail_out;
      if (rc == Z_STREAM_END) {
        between_members_ = true;
        inflateReset(&z_);
        ++members_;
      } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
        done_ = true;
        // Bytes after a complete member that are no member are padding in practice; anything else is damage.
        damage_ = (members_ > 0 && z_.total_out == 0) ? "bytes after the last gzip member were ignored"
                                                      : "gzip data is damaged";
      }
    }
    return got;
  }
  std::string_view damage() const override { return damage_; }
  uint64_t consumed() const override { return consumed_; }

 private:
  std::unique_ptr<Descriptor> fd_;
  std::string path_;
  std::vector<Bytef> input_;
  z_stream z_ = {};
  bool done_ = false;
  bool between_members_ = false;
  uint64_t members_ = 0;
  uint64_t consumed_ = 0;
  std::string_view damage_;
};

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

Result<std::unique_ptr<ByteSource>> OpenFile(const std::string& path) {
  const int raw = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (raw < 0) {
    const Code code = errno == ENOENT ? Code::kNotFound : Code::kUnreadable;
    return Error{code, std::string("cannot open: ") + std::strerror(errno), path};
  }
  auto fd = std::make_unique<Descriptor>(raw);
  struct stat info = {};
  if (::fstat(raw, &info) == 0 && S_ISDIR(info.st_mode)) {
    return Error{Code::kUnreadable, "is a directory", path};
  }
  unsigned char magic[2] = {0, 0};
  const ssize_t got = ::pread(raw, magic, sizeof magic, 0);
  if (got == 2 && magic[0] == 0x1f && magic[1] == 0x8b) {
    return std::unique_ptr<ByteSource>(std::make_unique<GzipFile>(std::move(fd), path));
  }
  return std::unique_ptr<ByteSource>(std::make_unique<PlainFile>(std::move(fd), path));
}

std::unique_ptr<ByteSource> OpenMemory(std::string_view text) { return std::make_unique<Memory>(text); }

}  // namespace teller::base
