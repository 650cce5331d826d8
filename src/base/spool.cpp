#include "base/spool.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace teller::base {

namespace {

constexpr size_t kChunk = 1u << 20;
constexpr uint64_t kAskEvery = 64u << 20;  // how often the free space is looked at

/// Reads a pipe, terminal or socket in its own order.
class Descriptor : public ByteSource {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Result<size_t> Read(char* into, size_t n) override {
    size_t got = 0;
    while (got < n) {
      const ssize_t r = ::read(fd_, into + got, n - got);
      if (r == 0) break;
      if (r < 0 && errno == EINTR) continue;
      if (r < 0) return Error{Code::kUnreadable, std::string("cannot read: ") + std::strerror(errno), {}};
      got += static_cast<size_t>(r);
    }
    return got;
  }

 private:
  int fd_;
};

std::string Folder() {
  const char* named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

Status WriteAll(int fd, const char* data, size_t n) {
  while (n > 0) {
    const ssize_t w = ::write(fd, data, n);
    if (w < 0 && errno == EINTR) continue;
    if (w < 0) return Error{Code::kUnreadable, std::string("cannot keep it: ") + std::strerror(errno), Folder()};
    data += w;
    n -= static_cast<size_t>(w);
  }
  return {};
}

/// A file without a name; where the file system cannot make one, its name is taken away at once.
int OpenNameless(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  std::string pattern = folder + "/teller-XXXXXX";
  const int named = ::mkostemp(pattern.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(pattern.c_str());
  return named;
}

std::string PathOf(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace

Spool::Spool(Spool&& other) noexcept {
  *this = std::move(other);
}

Spool& Spool::operator=(Spool&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(on_disk_, other.on_disk_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

Spool::~Spool() {
  if (fd_ >= 0) ::close(fd_);
}

Status Spool::MoveToDisk() {
  const std::string folder = Folder();
  const int disk = OpenNameless(folder);
  if (disk < 0) return Error{Code::kUnreadable, std::string("cannot keep it: ") + std::strerror(errno), folder};
  std::vector<char> chunk(kChunk);
  for (uint64_t at = 0; at < size_;) {
    const ssize_t r = ::pread(fd_, chunk.data(), chunk.size(), static_cast<off_t>(at));
    const Status written = r > 0 ? WriteAll(disk, chunk.data(), static_cast<size_t>(r))
                                 : Status(Error{Code::kUnreadable, "cannot keep it", folder});
    if (!written.ok()) {
      ::close(disk);
      return written;
    }
    at += static_cast<uint64_t>(r);
  }
  ::close(fd_);
  fd_ = disk;
  on_disk_ = true;
  return {};
}

Status Spool::Append(const char* data, size_t n) {
  if (!on_disk_ && size_ + n > kInMemory) TELLER_TRY(MoveToDisk());
  if (on_disk_ && size_ / kAskEvery != (size_ + n) / kAskEvery) {
    struct statvfs room = {};
    if (::fstatvfs(fd_, &room) == 0 && uint64_t{room.f_bavail} * room.f_frsize < kKeepFree + kAskEvery) {
      return Error{Code::kUnreadable,
                   "no room to keep the stream after " + std::to_string(size_ >> 20) +
                       " MiB; set TMPDIR to a larger folder, or write it to a file and name that",
                   Folder()};
    }
  }
  TELLER_TRY(WriteAll(fd_, data, n));
  size_ += n;
  return {};
}

Result<Spool> Spool::Of(ByteSource& source) {
  Spool spool;
  spool.fd_ = ::memfd_create("teller", MFD_CLOEXEC);
  if (spool.fd_ < 0) TELLER_TRY(spool.MoveToDisk());
  std::vector<char> chunk(kChunk);
  while (true) {
    auto got = source.Read(chunk.data(), chunk.size());
    if (!got) return got.error();
    if (*got == 0) break;
    TELLER_TRY(spool.Append(chunk.data(), *got));
  }
  spool.path_ = PathOf(spool.fd_);
  return spool;
}

Result<Spool> Spool::OfDescriptor(int fd) {
  if (::isatty(fd) != 0)
    return Error{Code::kUnreadable, "is a terminal; pipe a trace or a log into it", "standard input"};
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return Error{Code::kUnreadable, "is closed", "standard input"};
  if (S_ISREG(info.st_mode) && ::lseek(fd, 0, SEEK_CUR) == 0) {
    Spool spool;
    spool.fd_ = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    spool.size_ = static_cast<uint64_t>(info.st_size);
    spool.path_ = PathOf(spool.fd_);
    if (spool.fd_ >= 0 && ::access(spool.path_.c_str(), R_OK) == 0) return spool;
  }
  if (S_ISDIR(info.st_mode)) return Error{Code::kUnreadable, "is a directory; name it instead", "standard input"};
  Descriptor stream(fd);
  return Of(stream);
}

}  // namespace teller::base
