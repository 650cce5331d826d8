// Any bytes as a file of a run: compressed or not, an archive or not. Beyond "no crash": what an archive lists lies
// inside of it, and every file of the run keeps its records.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.hpp"
#include "fuzz/memory_file.hpp"
#include "ingest/common/tar.hpp"
#include "ingest/run.hpp"

using namespace teller;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto memory = base::OpenMemory(text);
  const auto index = ingest::ReadTarIndex(*memory);
  TELLER_CHECK(index.has_value());
  for (const auto& member : index->members) {
    TELLER_CHECK(!member.name.empty() && member.name.size() <= ingest::kMaxTarName + 256);
    TELLER_CHECK(member.offset <= size);
    // Only the last one may be cut off.
    TELLER_CHECK(member.size <= size - member.offset || !index->damage.empty());
  }
  const fuzz::MemoryFile file(data, size);
  ingest::RunOptions options;
  options.threads = 1;
  const auto store = ingest::ReadRun({.paths = {file.path()}}, options);
  if (!store) return 0;
  for (const auto& read : store->files) {
    if (read.kind != "kineto") continue;
    TELLER_CHECK(read.records_read == read.spans + read.instants + read.counters + read.flows + read.metadata +
                                          read.repaired_away + read.dropped);
  }
  return 0;
}
