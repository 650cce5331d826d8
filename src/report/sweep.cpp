#include <fmt/format.h>

#include <algorithm>

#include "report/skipped.hpp"
#include "report/table.hpp"
#include "report/token_stats.hpp"
#include "report/units.hpp"

namespace teller::report {

using Json = nlohmann::ordered_json;

namespace {

double Per(uint64_t amount, uint64_t steps) {
  return steps == 0 ? 0 : static_cast<double>(amount) / static_cast<double>(steps);
}

double Saved(uint64_t tokens, uint64_t nodes) {
  return nodes == 0 ? 0 : 1 - Per(tokens, nodes);
}

class SweepPage {
 public:
  SweepPage(const engine::Sweep& sweep, const TextOptions& options) : sweep_(sweep), page_(options) {}

  std::string Write() {
    page_.Field("split", sweep_.split);
    page_.Field("train", fmt::format("{} ({} names)", Count(sweep_.train.size(), "file"), Count(sweep_.bases)));
    page_.Field("test",
                fmt::format("{}, {}, {} nodes ({:.1f} a step), {:.2f} % of them with a name that no training file has",
                            Count(sweep_.test.size(), "file"), Count(sweep_.steps, "step"), Count(sweep_.nodes),
                            Per(sweep_.nodes, sweep_.steps), 100 * Per(sweep_.unknown, sweep_.nodes)));
    AddSkipped(page_, sweep_.skipped);
    if (page_.options().all) {
      for (const std::string& path : sweep_.train) page_.Line(2, "train  " + path);
      for (const std::string& path : sweep_.test) page_.Line(2, "test   " + path);
    }
    page_.Gap();
    page_.Line(
        0, fmt::format("{:<20} {:>8} {:>12} {:>9} {:>12}", "method", "merges", "tokens/step", "saved", "bytes/step"),
        Ink::kDim);
    Bytes("raw", sweep_.raw_bytes);
    Bytes("gzip -9", sweep_.gzip_bytes);
    Bytes("zstd -19", sweep_.zstd_bytes);
    Bytes("gzip -9, one stream", sweep_.gzip_all_bytes);
    Bytes("zstd -19, one stream", sweep_.zstd_all_bytes);
    Rows("bpe, closing marks", sweep_.bpe_close);
    Rows("bpe, marks folded", sweep_.bpe_fold);
    Row("re-pair, rules too", sweep_.repair, sweep_.repair.tokens + 2 * uint64_t{sweep_.repair.merges});
    Rows("tpe", sweep_.tpe);
    Engines();
    return page_.Take();
  }

 private:
  void Bytes(const char* name, uint64_t bytes) {
    page_.Line(0, fmt::format("{:<20} {:>8} {:>12} {:>9} {:>12.1f}", name, "", "", "", Per(bytes, sweep_.steps)));
  }
  void Row(const char* name, const engine::SweepRow& row, uint64_t tokens) {
    page_.Line(
        0, fmt::format("{:<20} {:>8} {:>12.1f} {:>8.2f}% {:>12.1f}", name, Count(row.merges), Per(tokens, sweep_.steps),
                       100 * Saved(tokens, sweep_.nodes), Per(row.bytes, sweep_.steps)));
  }
  void Rows(const char* name, const std::vector<engine::SweepRow>& rows) {
    bool all = false;
    for (const engine::SweepRow& row : rows) {
      // More merges than there are give the same again.
      if (all && row.merges < row.asked) continue;
      all = all || row.merges < row.asked;
      Row(name, row, row.tokens);
      if (row.merges < row.asked) page_.Line(2, "these are all the merges there are", Ink::kDim);
    }
  }

  /// Saved nodes, one row an engine and size of vocabulary.
  void Engines() {
    page_.Gap();
    page_.Head("tpe by engine: part of the nodes that is saved, by merges asked for");
    Table table({"engine", "train", "test", "steps", "nodes/step", "merges", "saved"});
    for (size_t e = 0; e < sweep_.engines.size(); ++e) {
      const engine::SweepEngine& engine = sweep_.engines[e];
      for (const engine::SweepRow& row : sweep_.tpe) {
        table.Row({engine.engine, Count(engine.train_files), Count(engine.files), Count(engine.steps),
                   fmt::format("{:.1f}", Per(engine.nodes, engine.steps)), Count(row.asked),
                   fmt::format("{:.2f}%", 100 * Saved(row.tokens_by_engine[e], engine.nodes))});
      }
    }
    table.AddTo(page_);
  }

  const engine::Sweep& sweep_;
  Page page_;
};

Json RowsToJson(const engine::Sweep& sweep, const std::vector<engine::SweepRow>& rows) {
  Json out = Json::array();
  for (const engine::SweepRow& row : rows) {
    Json engines = Json::object();
    for (size_t e = 0; e < sweep.engines.size(); ++e) {
      engines[sweep.engines[e].engine] = {{"tokens", row.tokens_by_engine[e]},
                                          {"saved", Saved(row.tokens_by_engine[e], sweep.engines[e].nodes)}};
    }
    out.push_back({{"asked", row.asked},
                   {"merges", row.merges},
                   {"tokens", row.tokens},
                   {"tokens_per_step", Per(row.tokens, sweep.steps)},
                   {"saved", Saved(row.tokens, sweep.nodes)},
                   {"bytes_per_step", Per(row.bytes, sweep.steps)},
                   {"engines", std::move(engines)}});
  }
  return out;
}

}  // namespace

std::string SweepToText(const engine::Sweep& sweep, const TextOptions& options) {
  return SweepPage(sweep, options).Write();
}

Json SweepToJson(const engine::Sweep& sweep) {
  Json out;
  out["schema"] = "teller.tpe-sweep/1";
  out["split"] = sweep.split;
  out["train"] = sweep.train;
  out["test"] = sweep.test;
  AddSkipped(out, sweep.skipped, sweep.lost);
  out["names"] = sweep.bases;
  out["steps"] = sweep.steps;
  out["nodes"] = sweep.nodes;
  out["nodes_per_step"] = Per(sweep.nodes, sweep.steps);
  out["unknown_nodes"] = sweep.unknown;
  Json engines = Json::array();
  for (const engine::SweepEngine& engine : sweep.engines) {
    engines.push_back({{"engine", engine.engine},
                       {"train_files", engine.train_files},
                       {"train_nodes", engine.train_nodes},
                       {"test_files", engine.files},
                       {"steps", engine.steps},
                       {"nodes", engine.nodes}});
  }
  out["engines"] = std::move(engines);
  out["raw_bytes_per_step"] = Per(sweep.raw_bytes, sweep.steps);
  out["gzip_bytes_per_step"] = Per(sweep.gzip_bytes, sweep.steps);
  out["zstd_bytes_per_step"] = Per(sweep.zstd_bytes, sweep.steps);
  out["gzip_one_stream_bytes_per_step"] = Per(sweep.gzip_all_bytes, sweep.steps);
  out["zstd_one_stream_bytes_per_step"] = Per(sweep.zstd_all_bytes, sweep.steps);
  out["tpe"] = RowsToJson(sweep, sweep.tpe);
  out["bpe_close"] = RowsToJson(sweep, sweep.bpe_close);
  out["bpe_fold"] = RowsToJson(sweep, sweep.bpe_fold);
  out["repair"] = {{"rules", sweep.repair.merges},
                   {"tokens", sweep.repair.tokens},
                   {"symbols_per_step", Per(sweep.repair.tokens + 2 * uint64_t{sweep.repair.merges}, sweep.steps)},
                   {"bytes_per_step", Per(sweep.repair.bytes, sweep.steps)}};
  return out;
}

}  // namespace teller::report
