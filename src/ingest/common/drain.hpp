#pragma once

#include <cstdint>
#include <vector>

#include "base/byte_source.hpp"
#include "base/status.hpp"

namespace teller::ingest {

/// Feeds a whole source to `splitter` (Feed and Finish) piece by piece and adds its length to `bytes`.
/// Errors: kUnreadable; the splitter is not finished then.
template <class Splitter>
base::Status Drain(base::ByteSource& source, Splitter& splitter, uint64_t& bytes) {
  constexpr size_t kChunk = 256u << 10;
  std::vector<char> chunk(kChunk);
  while (true) {
    const auto got = source.Read(chunk.data(), chunk.size());
    if (!got) return got.error();
    if (*got == 0) break;
    bytes += *got;
    splitter.Feed({chunk.data(), *got});
  }
  splitter.Finish();
  return {};
}

}  // namespace teller::ingest
