#include "engine/sweep.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "encode/symbol_ids.hpp"
#include "engine/piece_encoder.hpp"
#include "engine/run_path.hpp"
#include "engine/sequence_code.hpp"
#include "engine/training.hpp"
#include "tpe/trainer.hpp"

namespace teller::engine {

namespace {

/// The first `merges` merges of a vocabulary: what training with that bound gives.
base::Result<tpe::Vocabulary> Prefix(const tpe::Vocabulary& full, uint32_t merges) {
  tpe::Vocabulary out;
  for (uint32_t id = 0; id < full.size(); ++id) {
    base::Result<uint32_t> added = 0;
    switch (full.kind(id)) {
      case tpe::EntryKind::kUnknown: added = out.AddClass(full.class_name(full.class_of(id))); break;
      case tpe::EntryKind::kBase: added = out.AddBase(full.class_of(id), full.name(id)); break;
      case tpe::EntryKind::kMerge:
        if (out.merge_count() == merges) return out;
        added = out.AddMerge(full.pair(id));
        break;
    }
    if (!added) return added.error();
  }
  return out;
}

/// Steps of the test files, and where they are from.
class Tests {
 public:
  Tests(const Structures& structures, const std::vector<bool>& is_test) : structures_(structures) {
    std::map<std::string, size_t> rows;
    for (size_t s = 0; s < structures.sources.size(); ++s) rows.emplace(structures.sources[s].engine, 0);
    std::map<std::string, std::set<uint32_t>> train_files, test_files;
    std::map<std::string, SweepEngine> engines;
    pieces_.resize(structures.pieces.size());
    for (size_t p = 0; p < structures.pieces.size(); ++p) {
      const Structures::Piece& piece = structures.pieces[p];
      const std::string& engine = structures.sources[piece.source].engine;
      SweepEngine& row = engines[engine];
      row.engine = engine;
      if (!is_test[piece.source]) {
        row.train_nodes += piece.size;
        train_files[engine].insert(piece.source);
      } else if (structures.IsStep(piece)) {
        pieces_[p] = true;
        ++row.steps;
        row.nodes += piece.size;
        test_files[engine].insert(piece.source);
      }
    }
    for (auto& [name, row] : engines) {
      row.train_files = train_files[name].size();
      row.files = test_files[name].size();
      if (row.steps > 0) engines_.push_back(row);
    }
  }

  const std::vector<bool>& pieces() const { return pieces_; }
  const std::vector<SweepEngine>& engines() const { return engines_; }

  /// Sums tokens by engine.
  void Count(const std::vector<uint64_t>& tokens_by_piece, SweepRow& row) const {
    row.tokens_by_engine.assign(engines_.size(), 0);
    for (size_t p = 0; p < pieces_.size(); ++p) {
      if (!pieces_[p]) continue;
      row.tokens += tokens_by_piece[p];
      const std::string& engine = structures_.sources[structures_.pieces[p].source].engine;
      for (size_t e = 0; e < engines_.size(); ++e) {
        if (engines_[e].engine == engine) row.tokens_by_engine[e] += tokens_by_piece[p];
      }
    }
  }

 private:
  const Structures& structures_;
  std::vector<bool> pieces_;  // by piece: a step of a test file
  std::vector<SweepEngine> engines_;
};

base::Error Missing(const char* what) {
  return {.code = base::Code::kNotFound,
          .message = std::string("no ") + what + ": name runs of several files, or a --test run beside them"};
}

/// Rows of one method: trained once with the largest number of merges, of which smaller ones are the beginning.
base::Status Rows(tpe::Corpus&& corpus, const Structures& structures, const Tests& tests, bool depths,
                  const SweepOptions& options, uint32_t& bases, std::vector<SweepRow>& rows) {
  const uint32_t most = options.merges.empty() ? 0 : *std::max_element(options.merges.begin(), options.merges.end());
  if (options.progress != nullptr) options.progress->Update("training", 0, 0);
  const auto full =
      tpe::Train(std::move(corpus), {.max_merges = most, .min_base_count = kFewestOfName, .threads = options.threads});
  if (!full) return full.error();
  bases = full->base_count() - full->class_count();
  for (const uint32_t merges : options.merges) {
    const auto vocabulary = Prefix(*full, merges);
    if (!vocabulary) return vocabulary.error();
    const auto encoded = EncodePieces(structures, *vocabulary, tests.pieces(), options.threads, options.progress);
    if (!encoded) return encoded.error();
    SweepRow row{.asked = merges, .merges = vocabulary->merge_count()};
    std::vector<uint64_t> tokens(encoded->size());
    for (size_t p = 0; p < tokens.size(); ++p) {
      if (!tests.pieces()[p]) continue;
      const tpe::Tokens& one = encoded.value()[p].tokens;
      tokens[p] = one.size();
      row.bytes += depths ? EncodedBytes(one.ids, one.depths).size() : EncodedBytes(one.ids, {}).size();
    }
    tests.Count(tokens, row);
    rows.push_back(std::move(row));
  }
  return {};
}

/// The grammar of the test steps themselves.
base::Status Repair(const Structures& closed, const Tests& tests, unsigned threads, SweepRow& row) {
  Structures only;
  only.table = closed.table;
  only.sources = closed.sources;
  only.symbols = closed.symbols;
  only.depths = closed.depths;
  for (size_t p = 0; p < closed.pieces.size(); ++p) {
    if (tests.pieces()[p]) only.pieces.push_back(closed.pieces[p]);
  }
  auto corpus = CorpusOf(only, {});
  if (!corpus) return corpus.error();
  const auto grammar = tpe::Train(std::move(*corpus), {.max_merges = tpe::kMaxEntries / 2, .threads = threads});
  if (!grammar) return grammar.error();
  const auto encoded = EncodePieces(only, *grammar, {}, threads, nullptr);
  if (!encoded) return encoded.error();
  row.merges = grammar->merge_count();
  row.asked = row.merges;
  for (const EncodedPiece& piece : encoded.value()) {
    row.tokens += piece.tokens.size();
    row.bytes += EncodedBytes(piece.tokens.ids, {}).size();
  }
  std::vector<uint32_t> rules;
  for (uint32_t id = 0; id < grammar->size(); ++id) {
    if (!grammar->is_merge(id)) continue;
    rules.push_back(grammar->pair(id).left);
    rules.push_back(grammar->pair(id).right);
  }
  row.bytes += EncodedBytes(rules, {}).size();
  return {};
}

}  // namespace

std::vector<bool> SplitSources(const Structures& structures, const std::vector<std::string>& test,
                               std::string& sentence) {
  std::vector<bool> is_test(structures.sources.size());
  if (!test.empty()) {
    sentence = "test: the runs named by --test";
    std::set<std::string> named;
    for (const std::string& path : test) named.insert(CanonicalPath(path));
    for (size_t s = 0; s < is_test.size(); ++s) {
      is_test[s] = named.count(CanonicalPath(structures.sources[s].run)) > 0;
    }
    return is_test;
  }
  sentence =
      "test: of each engine every second run, ordered by path; of an engine with one run every second file; an engine "
      "with one "
      "file is tested only";
  std::map<std::string, std::map<std::string, std::map<std::string, size_t>>> engines;  // engine, run, path
  for (size_t s = 0; s < is_test.size(); ++s) {
    const auto& source = structures.sources[s];
    engines[source.engine][CanonicalPath(source.run)][source.path] = s;
  }
  for (const auto& [engine, runs] : engines) {
    if (runs.size() == 1 && runs.begin()->second.size() == 1) {
      is_test[runs.begin()->second.begin()->second] = true;
      continue;
    }
    size_t at = 0;
    for (const auto& [run, files] : runs) {
      for (const auto& [path, s] : files) {
        is_test[s] = at % 2 == 1;
        if (runs.size() == 1) ++at;
      }
      if (runs.size() > 1) ++at;
    }
  }
  return is_test;
}

base::Result<Sweep> RunSweep(const Structures& structures, const std::vector<std::string>& test,
                             const SweepOptions& options) {
  Sweep sweep;
  sweep.skipped = structures.skipped;
  sweep.lost = structures.lost;
  const std::vector<bool> is_test = SplitSources(structures, test, sweep.split);
  const Tests tests(structures, is_test);
  std::vector<bool> train(is_test.size());
  for (size_t s = 0; s < is_test.size(); ++s) {
    train[s] = !is_test[s];
    (is_test[s] ? sweep.test : sweep.train).push_back(structures.sources[s].path);
  }
  if (sweep.train.empty()) return Missing("training files");
  sweep.engines = tests.engines();
  for (const SweepEngine& engine : sweep.engines) {
    sweep.steps += engine.steps;
    sweep.nodes += engine.nodes;
  }
  if (sweep.steps == 0) return Missing("test steps");

  auto corpus = CorpusOf(structures, train);
  if (!corpus) return corpus.error();
  TELLER_TRY(Rows(std::move(*corpus), structures, tests, true, options, sweep.bases, sweep.tpe));

  auto names = CorpusOf(structures, train);
  if (!names) return names.error();
  const auto bases = tpe::Train(std::move(*names), {.max_merges = 0, .min_base_count = kFewestOfName});
  if (!bases) return bases.error();
  const auto plain = EncodePieces(structures, *bases, tests.pieces(), options.threads, nullptr);
  if (!plain) return plain.error();
  std::string all;
  for (size_t p = 0; p < structures.pieces.size(); ++p) {
    if (!tests.pieces()[p]) continue;
    const tpe::Tokens& nodes = plain.value()[p].tokens;
    const std::string raw = EncodedBytes(nodes.ids, nodes.depths);
    sweep.unknown += plain.value()[p].unknown;
    sweep.raw_bytes += raw.size();
    sweep.gzip_bytes += GzipBytes(raw);
    sweep.zstd_bytes += ZstdBytes(raw);
    all += raw;
  }
  sweep.gzip_all_bytes = GzipBytes(all);
  sweep.zstd_all_bytes = ZstdBytes(all);

  uint32_t ignored = 0;
  {
    const Structures closed = WithClosingMarks(structures);
    auto sequences = CorpusOf(closed, train);
    if (!sequences) return sequences.error();
    TELLER_TRY(Rows(std::move(*sequences), closed, tests, false, options, ignored, sweep.bpe_close));
    TELLER_TRY(Repair(closed, tests, options.threads, sweep.repair));
  }
  const Structures folded = WithFoldedMarks(structures);
  auto sequences = CorpusOf(folded, train);
  if (!sequences) return sequences.error();
  TELLER_TRY(Rows(std::move(*sequences), folded, tests, false, options, ignored, sweep.bpe_fold));
  return sweep;
}

}  // namespace teller::engine
