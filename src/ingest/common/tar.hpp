#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.hpp"

namespace teller::ingest {

/// A file in an archive.
struct TarMember {
  std::string name;     ///< as stored, without a leading "/" or "./"; bytes as they are, for showing only
  uint64_t offset = 0;  ///< of its content in the archive
  uint64_t size = 0;
};

/// What an archive holds, and what of it is not used.
struct TarIndex {
  std::vector<TarMember> members;  ///< order: as stored; of equal names the last one counts, as when it is unpacked
  uint64_t links = 0;              ///< symbolic and hard links: not followed
  uint64_t special = 0;            ///< devices, pipes, sparse files and types that are not known
  uint64_t hidden = 0;             ///< names with a part that begins with a dot
  uint64_t overwritten = 0;        ///< earlier members of the same name
  uint64_t behind = 0;             ///< where data begins that stands behind the end and is no archive; 0 = none
  std::string damage;              ///< why the list ends early; empty when it ended well
};

/// True when `head` begins with a header of the ustar family (POSIX.1-1988, pax, GNU) whose sum is right.
bool LooksLikeTar(std::string_view head);

/// Reads the headers of an archive from its first byte to its last; contents are passed over. Archives that were joined
/// (`cat a.tar b.tar`) are read on: empty blocks end nothing as long as another header follows.
/// Names of POSIX (prefix), pax ("path", "size") and GNU ("L") headers; sizes in octal and base 256. Sizes and names
/// come from the input: names above kMaxTarName and extended headers above kMaxTarHeader end the list, as do more than
/// kMaxTarMembers. Errors: those of reading.
base::Result<TarIndex> ReadTarIndex(base::ByteSource& source);

inline constexpr size_t kTarBlock = 512;
inline constexpr size_t kMaxTarName = 4096;
inline constexpr size_t kMaxTarHeader = 1u << 20;
inline constexpr size_t kMaxTarMembers = 100'000;

}  // namespace teller::ingest
