// The reader of Nsight Systems exports on arbitrary bytes: no crash, no leak, no endless scan, conservation of records,
// sorted spans, sound trees.

#include "ingest/nsys/nsys.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>

#include "tree/launch.hpp"
#include "tree/nesting.hpp"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

/// SQLite resolves links before it opens, so a file in memory without a name of its own will not do.
const std::string& Path() {
  static const std::string path = "/dev/shm/teller_fuzz_nsys_" + std::to_string(::getpid()) + ".sqlite";
  static const bool registered = std::atexit([] { std::remove(Path().c_str()); }) == 0;
  Require(registered);
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace teller;
  std::FILE* file = std::fopen(Path().c_str(), "wb");
  Require(file != nullptr && std::fwrite(data, 1, size, file) == size);
  std::fclose(file);
  trace::Store store;
  store.files.push_back({});
  store.files.back().path = "fuzz";
  ingest::RunOptions options;
  options.threads = 1;
  (void)ingest::KindOfDatabase(Path());
  Require(ingest::ReadNsys({{trace::FileRow(0), Path()}}, store, options).ok());
  const auto& read = store.files[0];
  Require(read.records_read ==
          read.spans + read.instants + read.counters + read.flows + read.metadata + read.repaired_away + read.dropped);
  Require(read.spans == store.spans.size() && read.instants == store.instants.size());
  Require(read.records_read <= 6 * size + 64);  // no table gives more rows than fit into the file
  tree::Nest(store, 1);
  trace::Trees trees;
  tree::LinkLaunches(store, trees);
  for (size_t row = 0; row < store.spans.size(); ++row) {
    Require(store.spans.duration[row] >= 0 && store.spans.name[row].valid());
    Require(store.track_of(row).process.valid());
    const auto parent = store.spans.parent[row];
    Require(!parent.valid() || parent.value() < row);
    if (row == 0 || store.spans.track[row] != store.spans.track[row - 1]) continue;
    const auto key = [&store](size_t r) { return std::tuple(store.spans.begin[r], -store.spans.end(r)); };
    Require(key(row - 1) <= key(row));
  }
  return 0;
}
