// The Chrome-trace reader on arbitrary bytes: no crash, no leak, conservation of records, sorted spans, sound trees.

#include <cstdint>
#include <cstdlib>
#include <tuple>

#include "fuzz/memory_file.hpp"
#include "ingest/kineto/kineto.hpp"
#include "tree/graph.hpp"
#include "tree/launch.hpp"
#include "tree/nesting.hpp"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace teller;
  const fuzz::MemoryFile bytes(data, size);
  trace::Store store;
  store.files.push_back({});
  store.files.back().path = "fuzz";
  ingest::RunOptions options;
  options.threads = 1;
  Require(ingest::ReadKineto({{trace::FileRow(0), bytes.path()}}, store, options).ok());
  const auto& file = store.files[0];
  Require(file.records_read ==
          file.spans + file.instants + file.counters + file.flows + file.metadata + file.repaired_away + file.dropped);
  Require(file.spans == store.spans.size());
  tree::Nest(store, 1);
  trace::Trees trees;
  tree::LinkLaunches(store, trees);
  Require(trees.gpu_work == trees.gpu_work_linked + trees.gpu_work_unlaunched);
  tree::AttributeGraphs(store, trees);
  for (const auto& origin : trees.graph_origins) {
    Require(origin.work.value() < store.spans.size() && origin.confidence > 0 && origin.confidence <= 1);
    Require(trees.OriginOf(origin.work) == &origin);
  }
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
