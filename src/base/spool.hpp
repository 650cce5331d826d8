#pragma once

#include <cstdint>
#include <string>

#include "base/byte_source.hpp"

namespace teller::base {

/// Bytes of a stream that can be read only once, kept so that it can be opened by path and read again.
/// Small ones stay in memory, larger ones go to a temporary file that has no name: it vanishes with the process,
/// however that ends. The path is valid in this process only and as long as the spool.
class Spool {
 public:
  Spool(Spool&& other) noexcept;
  Spool& operator=(Spool&& other) noexcept;
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  ~Spool();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

  /// Keeps all of `source`. Errors: kUnreadable, also when the folder for temporary files ($TMPDIR, else /tmp) would
  /// get full.
  static Result<Spool> Of(ByteSource& source);
  /// Keeps what a descriptor gives until its end (standard input). A regular file is used as it is.
  /// Errors: the same, and when it is a terminal.
  static Result<Spool> OfDescriptor(int fd);

  static constexpr uint64_t kInMemory = 64u << 20;
  static constexpr uint64_t kKeepFree = 256u << 20;  ///< of the folder's file system

 private:
  Spool() = default;
  Status Append(const char* data, size_t n);
  Status MoveToDisk();

  int fd_ = -1;
  bool on_disk_ = false;
  uint64_t size_ = 0;
  std::string path_;
};

}  // namespace teller::base
