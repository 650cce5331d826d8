#pragma once

#include <memory>
#include <string_view>

#include "base/byte_source.hpp"

namespace teller::base {

/// Inflates gzip (RFC 1952), one member after the other.
std::unique_ptr<ByteSource> Gunzip(std::unique_ptr<ByteSource> raw);

/// Decompresses zstd (RFC 8878), one frame after the other. A frame whose window is larger than kMaxZstdWindowLog
/// allows is damage: a window is memory that the input asks for.
std::unique_ptr<ByteSource> Unzstd(std::unique_ptr<ByteSource> raw);
inline constexpr int kMaxZstdWindowLog = 27;  ///< 128 MiB, what `zstd` itself decompresses without being asked

enum class Compression { kNone, kGzip, kZstd };
/// By the first bytes; four are enough.
Compression CompressionOf(std::string_view head);

/// What `raw` holds: decompressed when its first bytes say that it is compressed, as it is otherwise.
/// Errors: those of reading these bytes.
Result<std::unique_ptr<ByteSource>> Decompressed(std::unique_ptr<ByteSource> raw);

}  // namespace teller::base
