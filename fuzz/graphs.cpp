// Any bytes as learned graphs, as they are and with the right sum behind them. Beyond "no crash": a refused file leaves
// nothing, and every launch of an accepted one has names that the store knows.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "ingest/learned_graphs/learned_graphs.hpp"
#include "tree/graph_sequence.hpp"

using namespace teller;

namespace {

void Read(std::string_view text) {
  trace::Store store;
  store.files.resize(1);
  auto source = base::OpenMemory(text);
  const auto status = ingest::ReadGraphs(*source, trace::FileRow(0), store, {});
  TELLER_CHECK(status.ok() || store.learned_graphs.empty());
  for (const auto& sequence : store.learned_graphs) {
    for (const auto& launch : sequence.launches) {
      for (const trace::StringId id : {launch.family, launch.stem, launch.module, launch.op})
        TELLER_CHECK(!id.valid() || id.value() < store.strings.size());
    }
  }
  tree::GraphTokens tokens(store);
  std::vector<tree::GraphReference> references;
  tree::AddLearned(store, tokens, references);
  TELLER_CHECK(references.size() == store.learned_graphs.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Read(text);
  Read(text + ingest::GraphsSumLine(text) + "\n");
  return 0;
}
