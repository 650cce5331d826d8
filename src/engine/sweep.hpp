#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/structures.hpp"
#include "tpe/vocabulary.hpp"

namespace teller::engine {

/// How test steps encode by one method.
struct SweepRow {
  uint32_t asked = 0;   ///< merges asked for
  uint32_t merges = 0;  ///< merges there are: fewer when no pair is left that occurs twice
  uint64_t tokens = 0;
  uint64_t bytes = 0;                      ///< see Sweep
  std::vector<uint64_t> tokens_by_engine;  ///< parallel to Sweep::engines
};

struct SweepEngine {
  std::string engine;
  uint64_t train_files = 0;
  uint64_t train_nodes = 0;
  uint64_t files = 0;  ///< of the test
  uint64_t steps = 0;
  uint64_t nodes = 0;
};

/// Sizes of the test steps' structure under several methods. Bytes are of the steps alone, without names and
/// vocabularies: every method is given the same table of names. A number is a varint (7 bits a byte), small for
/// frequent names; a depth is the signed difference to the entry before it.
///   raw: one (name, depth) a node. gzip -9, zstd -19: that, compressed.
///   tpe: one (token, depth) a token, vocabulary learned from the training files.
///   bpe_close: the sequence of names in pre-order with one closing mark for each node that ends before the next
///   begins, byte pair encoding learned from the training files: a token is a number alone. bpe_fold: the same with the
///   closing marks folded into the name before them. repair: the grammar of bpe_close's sequences of the test steps
///   themselves, learned until no pair occurs twice; its rules belong to the message and are counted, two symbols each.
struct Sweep {
  std::vector<std::string> train, test;  ///< files
  std::vector<Structures::Skipped> skipped;
  std::vector<std::string> lost;     ///< see Structures
  std::string split;                 ///< how they were told apart, one sentence
  std::vector<SweepEngine> engines;  ///< with a test file; order: by name
  uint64_t steps = 0;                ///< of the test
  uint64_t nodes = 0;
  uint64_t unknown = 0;  ///< nodes whose name no training file has
  uint32_t bases = 0;    ///< names, without the unknown entry of each class
  uint64_t raw_bytes = 0;
  uint64_t gzip_bytes = 0;      ///< each step alone
  uint64_t zstd_bytes = 0;      ///< each step alone
  uint64_t gzip_all_bytes = 0;  ///< all steps in one stream
  uint64_t zstd_all_bytes = 0;
  std::vector<SweepRow> tpe, bpe_close, bpe_fold;  ///< order: as asked
  SweepRow repair;                                 ///< merges: rules; tokens: sequence; bytes: sequence and rules
};

struct SweepOptions {
  std::vector<uint32_t> merges;
  unsigned threads = 0;
  base::Progress* progress = nullptr;
};

/// Which sources are for testing (true) and which for training. `test` is what was named for the test, in any spelling
/// (ReadStructures must have been told the same, so that no training run holds its files); none = by rule:
/// of each engine's runs, ordered by path, every second one; of an engine with one run every second file; an engine
/// with one file is tested only, and shows how a vocabulary carries over. `sentence` says which rule held.
std::vector<bool> SplitSources(const Structures& structures, const std::vector<std::string>& test,
                               std::string& sentence);

/// Errors: kNotFound (no test steps, no training nodes), those of training and encoding.
base::Result<Sweep> RunSweep(const Structures& structures, const std::vector<std::string>& test,
                             const SweepOptions& options);

}  // namespace teller::engine
