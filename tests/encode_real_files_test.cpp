// Forests, tokens and their attributes on every real trace.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <regex>

#include "base/rng.hpp"
#include "encode/attributes.hpp"
#include "encode/normal.hpp"
#include "encode/symbol_ids.hpp"
#include "engine/engine.hpp"
#include "engine/vocabulary.hpp"
#include "tests/real_files.hpp"
#include "tpe/decoder.hpp"
#include "tpe/encoder.hpp"

namespace teller {
namespace {

namespace fs = std::filesystem;

/// Every trace file, and every labelled run as a whole.
std::vector<std::string> RealRuns() {
  std::vector<std::string> runs;
  const fs::path root = RealFiles();
  for (const auto& entry : fs::recursive_directory_iterator(root / "traces")) {
    const std::string name = entry.path().filename();
    if (entry.is_regular_file() && (name.ends_with(".json.gz") || name.ends_with(".json") || name.ends_with(".sqlite")))
      runs.push_back(entry.path());
  }
  for (const auto& entry : fs::recursive_directory_iterator(root / "lab")) {
    if (entry.path().filename() == "label.json") runs.push_back(entry.path().parent_path());
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

/// A run, all its forests, and their tokens under the built-in vocabulary.
struct RealRun {
  engine::Run run;
  std::vector<encode::Segment> segments;
  std::vector<encode::Forest> forests;
  std::vector<std::vector<uint32_t>> ids;
  std::vector<tpe::Tokens> tokens;
  uint64_t traced = 0;
};

std::optional<RealRun> ReadRealRun(const std::string& path, const tpe::Vocabulary& vocabulary,
                                   const tpe::Encoder& encoder) {
  auto opened = engine::Open({.inputs = {.paths = {path}}, .threads = 2});
  if (!opened) return std::nullopt;  // logs and notes beside the traces
  RealRun out{.run = std::move(*opened)};
  encode::SymbolTable table;
  encode::ForestBuilder builder(out.run.store, out.run.trees, table);
  encode::VocabularySymbols symbols(vocabulary, table);
  tpe::EncodeScratch scratch;
  out.traced = builder.traced_spans();
  for (const encode::Segment& segment : encode::SegmentsOf(out.run.store, out.run.trees)) {
    out.segments.push_back(segment);
    out.forests.push_back(builder.Build(segment));
    out.ids.push_back(symbols.Of(out.forests.back().symbol));
    out.tokens.emplace_back();
    const base::Status encoded =
        encoder.Encode(encode::View(out.ids.back(), out.forests.back()), scratch, out.tokens.back());
    EXPECT_TRUE(encoded.ok()) << path << ": " << encoded.error().Text();
  }
  return out;
}

TEST(EncodeRealFiles, ForestsHoldEverySpanOnceAndTokensGiveThemBack) {
  TELLER_NEED_REAL_FILES();
  const auto vocabulary = engine::LoadVocabulary("");
  ASSERT_TRUE(vocabulary) << vocabulary.error().Text();
  const tpe::Encoder encoder(vocabulary->vocabulary);
  size_t runs = 0;
  uint64_t spans = 0, nodes = 0, structure = 0, tokens = 0;
  for (const std::string& path : RealRuns()) {
    const auto run = ReadRealRun(path, vocabulary->vocabulary, encoder);
    if (!run) continue;
    ++runs;
    std::vector<bool> seen(run->run.store.spans.size());
    uint64_t in_run = 0, structure_in_run = 0;
    for (size_t f = 0; f < run->forests.size(); ++f) {
      const encode::Forest& forest = run->forests[f];
      in_run += forest.size();
      structure_in_run += forest.structure;
      tokens += run->tokens[f].size();
      for (const trace::SpanRow span : forest.span) {
        if (!span.valid()) continue;
        EXPECT_FALSE(seen[span.value()]) << path << ": span " << span.value() << " twice";
        seen[span.value()] = true;
      }
      const auto back = tpe::Decode(vocabulary->vocabulary, run->tokens[f].ids, run->tokens[f].depths);
      ASSERT_TRUE(back) << path << ": " << back.error().Text();
      EXPECT_EQ(back->symbols, run->ids[f]) << path;
      EXPECT_EQ(back->depths, forest.depth) << path;
    }
    EXPECT_EQ(in_run, run->traced + structure_in_run) << path;
    spans += run->traced;
    nodes += in_run;
    structure += structure_in_run;
  }
  std::printf("%zu runs, %llu spans + %llu structure nodes = %llu nodes, %llu tokens\n", runs,
              static_cast<unsigned long long>(spans), static_cast<unsigned long long>(structure),
              static_cast<unsigned long long>(nodes), static_cast<unsigned long long>(tokens));
  EXPECT_GE(runs, 60u);
}

/// A call becomes slower: so does all around it.
void Plant(encode::Forest& forest, uint32_t node, double factor) {
  const auto more = static_cast<trace::Nanos>(static_cast<double>(forest.self[node]) * (factor - 1));
  forest.self[node] += more;
  uint32_t depth = forest.depth[node] + 1;
  for (uint32_t i = node + 1; i-- > 0;) {
    if (forest.depth[i] >= depth) continue;
    depth = forest.depth[i];
    forest.total[i] += more;
  }
}

/// Tokens of a run with the most nodes: (forest, token), largest first.
std::vector<std::pair<size_t, size_t>> LargestTokens(const RealRun& run, size_t most) {
  std::vector<std::tuple<uint32_t, size_t, size_t>> all;
  for (size_t f = 0; f < run.tokens.size(); ++f) {
    const tpe::Tokens& tokens = run.tokens[f];
    for (size_t t = 0; t < tokens.size(); ++t) {
      const uint32_t last =
          t + 1 < tokens.size() ? tokens.first_node[t + 1] : static_cast<uint32_t>(run.forests[f].size());
      all.emplace_back(last - tokens.first_node[t], f, t);
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tuple(std::get<0>(b), std::get<1>(a), std::get<2>(a)) <
           std::tuple(std::get<0>(a), std::get<1>(b), std::get<2>(b));
  });
  std::vector<std::pair<size_t, size_t>> out;
  for (size_t i = 0; i < std::min(most, all.size()); ++i) out.emplace_back(std::get<1>(all[i]), std::get<2>(all[i]));
  return out;
}

TEST(EncodeRealFiles, WorstConstituentPointsAtAPlantedSlowOperator) {
  TELLER_NEED_REAL_FILES();
  const auto vocabulary = engine::LoadVocabulary("");
  ASSERT_TRUE(vocabulary);
  const tpe::Encoder encoder(vocabulary->vocabulary);
  size_t planted = 0, judged = 0, largest = 0, found = 0;
  uint64_t nodes_of_tokens = 0;
  uint64_t seed = 1;
  for (const std::string& path : RealRuns()) {
    auto run = ReadRealRun(path, vocabulary->vocabulary, encoder);
    if (!run) continue;
    const auto tokens_with_most = LargestTokens(*run, 20);
    for (size_t plant = 0; plant < 12 && !tokens_with_most.empty(); ++plant) {
      base::Rng rng(++seed);
      const auto [f, t] = tokens_with_most[rng.Below(tokens_with_most.size())];
      const tpe::Tokens& tokens = run->tokens[f];
      const uint32_t first = tokens.first_node[t];
      const uint32_t last =
          t + 1 < tokens.size() ? tokens.first_node[t + 1] : static_cast<uint32_t>(run->forests[f].size());
      const auto node = static_cast<uint32_t>(first + rng.Below(last - first));
      const encode::Forest healthy = run->forests[f];
      Plant(run->forests[f], node, 1.5 + 18.5 * rng.Unit());
      encode::NodeNormals normals(run->run.store, run->run.trees);
      for (size_t i = 0; i < run->forests.size(); ++i) normals.Add(run->segments[i], run->forests[i]);
      normals.Finish();
      const auto residuals = normals.Judge(run->segments[f], run->forests[f]);
      const auto attributes = encode::Attributes(run->forests[f], tokens, residuals);
      ++planted;
      nodes_of_tokens += last - first;
      judged += residuals[node].known();
      bool is_largest = residuals[node].known();
      for (uint32_t i = first; i < last; ++i)
        is_largest = is_largest && (i == node || residuals[i].z < residuals[node].z);
      if (is_largest) {
        ++largest;
        found += first + attributes[t].worst_offset == node;
        EXPECT_EQ(first + attributes[t].worst_offset, node) << path << " seed " << seed;
      }
      run->forests[f] = healthy;
    }
  }
  std::printf(
      "%zu planted in tokens of %.0f nodes on average: %zu judged, %zu the largest of their token, %zu of these "
      "pointed at\n",
      planted, static_cast<double>(nodes_of_tokens) / static_cast<double>(planted), judged, largest, found);
  EXPECT_EQ(found, largest);
  EXPECT_GE(largest, 50u);
}

TEST(DefaultVocabulary, KnowsEveryLayerAndTellsNothingOfWhereItIsFrom) {
  const auto vocabulary = engine::LoadVocabulary("");
  ASSERT_TRUE(vocabulary) << vocabulary.error().Text();
  encode::SymbolTable table;
  EXPECT_TRUE(encode::VocabularySymbols(vocabulary->vocabulary, table).Check().ok());
  EXPECT_EQ(vocabulary->vocabulary.merge_count(), 4096u);
  // Paths of machines, addresses of networks and of memory, long digests, accounts, words that secrets come with.
  const std::regex forbidden(
      R"((^|[^a-zA-Z0-9_.])/(home|root|tmp|usr|opt|app|mnt|data|work|workspace|var|etc|Users)/)"
      R"(|[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}|0x[0-9a-f]{4,}|[0-9a-f]{16,}|[\w.]+@[\w.]+\.[a-z])"
      R"(|(password|secret|api_key|apikey|token|bearer)\s*[=:]\s*\S|sk-[A-Za-z0-9]{8,}|hf_[A-Za-z0-9]{8,}|site-packages)");
  size_t names = 0;
  for (uint32_t id = 0; id < vocabulary->vocabulary.size(); ++id) {
    if (vocabulary->vocabulary.kind(id) != tpe::EntryKind::kBase) continue;
    const std::string name(vocabulary->vocabulary.name(id));
    EXPECT_FALSE(std::regex_search(name, forbidden)) << name;
    for (const char c : name) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << name;
    ++names;
  }
  EXPECT_GT(names, 1000u);
}

}  // namespace
}  // namespace teller
