#pragma once

#include <optional>
#include <vector>

#include "base/spool.hpp"
#include "ingest/common/discover.hpp"
#include "trace/store.hpp"

namespace teller::ingest {

/// The name that stands for standard input.
inline constexpr std::string_view kStandardInput = "-";

/// Turns what holds files into the files: standard input is kept so that it can be read again, archives become their
/// members. A member of a plain archive is read where it lies; a compressed archive is decompressed once, into memory
/// or a file without a name. Nothing is ever written under a name that an archive tells. Owns what it keeps: must
/// outlive the reading.
class Unpacker {
 public:
  /// Keeps standard input. Errors: it is a terminal, closed, or too large to keep.
  base::Result<Found> ReadStandardInput(bool as_log);

  /// `found` itself, or the members of the archive that it is, shown as "run.tar!traces/rank0.json".
  /// Diagnostics: input.archive_damaged, input.archive_behind, input.archive_links, input.archive_special,
  /// input.archive_overwritten.
  std::vector<Found> Unpack(Found found, trace::Store& store);

  /// The first archive that was damaged: what is wrong, and its name as the path. None when all were whole.
  const std::optional<base::Error>& damage() const { return damage_; }

 private:
  base::Result<std::string> PathOfArchive(const Found& found, std::string& damage);

  std::vector<base::Spool> kept_;
  std::optional<base::Error> damage_;
};

}  // namespace teller::ingest
