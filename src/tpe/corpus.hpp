#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.hpp"
#include "base/string_pool.hpp"
#include "tpe/forest.hpp"

namespace teller::tpe {

/// What a vocabulary is trained on: named symbols and weighted forests ("sequences"). Sequences that are equal are
/// stored once and their weights added; no pair reaches over the end of a sequence. Threads: confined.
class Corpus {
 public:
  struct Options {
    bool merge_equal = true;  ///< false: equal sequences stay apart (measurements only; the result is the same)
    uint64_t hash_seed = 0;   ///< of the table of sequences; never visible in the result
  };
  Corpus() : Corpus(Options{}) {}
  explicit Corpus(Options options) : options_(options) {}

  /// Number of a class, by order of first use. Errors: kLimit, kUsage (empty or too long).
  base::Result<uint32_t> AddClass(std::string_view name);
  /// Number of a symbol of this corpus, by order of first use; the symbols of Add's forests. Errors: kLimit, kUsage.
  base::Result<uint32_t> AddSymbol(uint32_t class_index, std::string_view name);
  /// Adds a forest whose symbols are numbers from AddSymbol, as if it stood here `weight` times; 0 is nothing. Errors:
  /// those of ValidateForest; kUsage (no such symbol); kLimit (kMaxNodes in all, total weight of nodes above 2^62).
  base::Status Add(const ForestView& forest, uint64_t weight = 1);
  /// Makes room, so that growing does not copy.
  void Reserve(uint64_t nodes);

  uint64_t sequence_count() const { return sequences_.size(); }
  /// Nodes that are stored.
  uint64_t node_count() const { return sequences_.empty() ? 0 : symbols_.size() - sequences_.size() - 1; }
  /// Nodes times weight.
  uint64_t weighted_nodes() const { return weighted_nodes_; }
  uint32_t symbol_count() const { return static_cast<uint32_t>(names_.size()); }

  struct Sequence {
    uint64_t weight = 0;
    uint32_t begin = 0;  ///< position of its first node
    uint32_t size = 0;
  };
  const std::vector<Sequence>& sequences() const { return sequences_; }
  /// All sequences one after the other; before, between and after them stands one place that holds kNoSymbol.
  static constexpr uint32_t kNoSymbol = 0xFFFFFFFFu;
  const std::vector<uint32_t>& symbols() const { return symbols_; }
  const std::vector<uint32_t>& depths() const { return depths_; }
  const std::vector<std::string>& classes() const { return classes_; }
  uint32_t symbol_class(uint32_t symbol) const { return symbol_class_[symbol]; }
  std::string_view symbol_name(uint32_t symbol) const { return pool_.Text(names_[symbol]); }
  /// Hands out the columns; the corpus is empty of sequences after.
  struct Columns {
    std::vector<uint32_t> symbols;
    std::vector<uint32_t> depths;
    std::vector<Sequence> sequences;
  };
  Columns TakeColumns();

 private:
  Options options_;
  std::vector<std::string> classes_;
  base::StringPool pool_;
  std::vector<uint32_t> symbol_class_;
  std::vector<base::StringId> names_;
  std::unordered_map<uint64_t, uint32_t> by_name_;  // key: class, then row of the pool
  std::vector<uint32_t> symbols_;
  std::vector<uint32_t> depths_;
  std::vector<Sequence> sequences_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
  uint64_t weighted_nodes_ = 0;
};

}  // namespace teller::tpe
