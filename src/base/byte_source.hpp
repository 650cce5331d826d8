#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.hpp"

namespace teller::base {

/// A stream of bytes: a file (plain, or decompressed on the way), or memory. Threads: confined.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Reads up to `n` bytes; fewer only at the end; 0 = end.
  /// Errors: kUnreadable when the system refuses.
  virtual Result<size_t> Read(char* into, size_t n) = 0;
  /// Why the stream ended early ("gzip data ends in the middle of a member"); empty when it ended well.
  virtual std::string_view damage() const { return {}; }
  /// Bytes on disk consumed so far, for progress.
  virtual uint64_t consumed() const { return 0; }
};

/// Opens a file; gzip (also several members) is recognized by its first bytes, not by its name.
/// Only regular files are read: a pipe or device is refused. Errors: kNotFound, kUnreadable.
Result<std::unique_ptr<ByteSource>> OpenFile(const std::string& path);

/// Reads from `text`, which must outlive the source.
std::unique_ptr<ByteSource> OpenMemory(std::string_view text);

}  // namespace teller::base
