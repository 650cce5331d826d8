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

/// Opens a file; gzip (also several members) and zstd (also several frames) are recognized by their first bytes, not by
/// the name. `path` may also be what FileRegion made. Only regular files are read: a pipe or device is refused. Errors:
/// kNotFound, kUnreadable.
Result<std::unique_ptr<ByteSource>> OpenFile(const std::string& path);

/// The same without decompression.
Result<std::unique_ptr<ByteSource>> OpenRaw(const std::string& path);

/// Name of `size` bytes of a file from `offset` on, for OpenFile: so a member of an archive is read where it lies.
/// The name holds a zero byte, which no path can: to anything but OpenFile it is the path of the whole file.
std::string FileRegion(const std::string& path, uint64_t offset, uint64_t size);

/// Size of a file or region before decompression, for progress; 0 when it is not known.
uint64_t BytesOnDisk(const std::string& path);

/// Reads from `text`, which must outlive the source.
std::unique_ptr<ByteSource> OpenMemory(std::string_view text);

}  // namespace teller::base
