#pragma once

#include <string>
#include <string_view>

#include "base/byte_source.hpp"
#include "base/limits.hpp"
#include "base/status.hpp"
#include "trace/store.hpp"

namespace teller::ingest {

/// Files of launch sequences that an earlier run showed; docs/reference/teller.graphs-1.md is the form.
inline constexpr std::string_view kGraphsSchema = "teller.graphs/1";
inline constexpr size_t kMaxGraphsBytes = 128u << 20;  ///< of a file, decompressed
inline constexpr size_t kMaxGraphsString = 4096;       ///< bytes of one name or path
inline constexpr size_t kMaxGraphsStrings = 1u << 20;

/// True when a file says by its first bytes that it is one, of whatever version.
bool LooksLikeGraphs(std::string_view head);

/// Appends the sequences of a file to Store::learned_graphs. All or nothing: a damaged file leaves the store as it was,
/// but for interned names. Errors: kBadFormat with the line, kUnsupported (another version), kLimit, kUnreadable.
base::Status ReadGraphs(base::ByteSource& source, trace::FileRow file, trace::Store& store, const base::Limits& limits);

/// The last line of a file, without its line end, whose other bytes are `bytes`.
std::string GraphsSumLine(std::string_view bytes);

}  // namespace teller::ingest
