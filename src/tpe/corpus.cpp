#include "tpe/corpus.hpp"

#include <algorithm>

#include "tpe/vocabulary.hpp"

namespace teller::tpe {
namespace {

/// Total weights stay below this, so that sums of counts cannot overflow.
constexpr uint64_t kMaxWeight = 1ULL << 62;

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

uint64_t HashOf(const ForestView& forest, uint64_t seed) {
  uint64_t hash = Mix(seed, forest.size());
  for (size_t i = 0; i < forest.size(); ++i) hash = Mix(hash, (uint64_t{forest.symbols[i]} << 32) | forest.depths[i]);
  return hash;
}

}  // namespace

base::Result<uint32_t> Corpus::AddClass(std::string_view name) {
  const auto at = std::find(classes_.begin(), classes_.end(), name);
  if (at != classes_.end()) return static_cast<uint32_t>(at - classes_.begin());
  if (name.empty() || name.size() > kMaxNameBytes) {
    return base::Error{base::Code::kUsage, "name of a class has " + std::to_string(name.size()) +
                                               " bytes, expected 1 to " + std::to_string(kMaxNameBytes)};
  }
  if (classes_.size() >= kMaxClasses) {
    return base::Error{base::Code::kLimit, "corpus has " + std::to_string(kMaxClasses) + " classes, which is the most"};
  }
  classes_.emplace_back(name);
  return static_cast<uint32_t>(classes_.size() - 1);
}

base::Result<uint32_t> Corpus::AddSymbol(uint32_t class_index, std::string_view name) {
  if (class_index >= classes_.size()) {
    return base::Error{base::Code::kUsage, "class " + std::to_string(class_index) + " is not in the corpus"};
  }
  if (name.size() > kMaxNameBytes) {
    return base::Error{base::Code::kUsage, "name has " + std::to_string(name.size()) + " bytes, expected at most " +
                                               std::to_string(kMaxNameBytes)};
  }
  const base::StringId text = pool_.Intern(name);
  const auto [at, is_new] = by_name_.emplace((uint64_t{class_index} << 32) | text.value(), symbol_count());
  if (!is_new) return at->second;
  if (names_.size() >= kNoSymbol) return base::Error{base::Code::kLimit, "corpus has too many symbols"};
  names_.push_back(text);
  symbol_class_.push_back(class_index);
  return symbol_count() - 1;
}

base::Status Corpus::Add(const ForestView& forest, uint64_t weight) {
  TELLER_TRY(ValidateForest(forest));
  for (size_t i = 0; i < forest.size(); ++i) {
    if (forest.symbols[i] >= symbol_count()) {
      return base::Error{
          base::Code::kUsage,
          "symbol is " + std::to_string(forest.symbols[i]) + ", expected less than " + std::to_string(symbol_count()),
          {},
          "node " + std::to_string(i)};
    }
  }
  if (weight == 0 || forest.size() == 0) return {};
  if (weight > kMaxWeight / forest.size() || weighted_nodes_ > kMaxWeight - weight * forest.size()) {
    return base::Error{base::Code::kLimit, "weights of the corpus add up to more than 2^62; use smaller ones"};
  }
  uint64_t hash = 0;
  if (options_.merge_equal) {
    hash = HashOf(forest, options_.hash_seed);
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto at = first; at != last; ++at) {
      Sequence& other = sequences_[at->second];
      if (other.size == forest.size() &&
          std::equal(forest.symbols.begin(), forest.symbols.end(), symbols_.begin() + other.begin) &&
          std::equal(forest.depths.begin(), forest.depths.end(), depths_.begin() + other.begin)) {
        other.weight += weight;
        weighted_nodes_ += weight * forest.size();
        return {};
      }
    }
  }
  if (symbols_.size() + forest.size() + 2 > kMaxNodes) {
    return base::Error{base::Code::kLimit,
                       "corpus has more than " + std::to_string(kMaxNodes) + " nodes; train on fewer runs"};
  }
  const auto mark = [&] {
    symbols_.push_back(kNoSymbol);
    depths_.push_back(0);
  };
  if (sequences_.empty()) mark();
  if (options_.merge_equal) by_hash_.emplace(hash, static_cast<uint32_t>(sequences_.size()));
  sequences_.push_back({weight, static_cast<uint32_t>(symbols_.size()), static_cast<uint32_t>(forest.size())});
  symbols_.insert(symbols_.end(), forest.symbols.begin(), forest.symbols.end());
  depths_.insert(depths_.end(), forest.depths.begin(), forest.depths.end());
  mark();
  weighted_nodes_ += weight * forest.size();
  return {};
}

Corpus::Columns Corpus::TakeColumns() {
  Columns columns = {std::move(symbols_), std::move(depths_), std::move(sequences_)};
  symbols_ = {};
  depths_ = {};
  sequences_ = {};
  by_hash_ = {};
  weighted_nodes_ = 0;
  return columns;
}

void Corpus::Reserve(uint64_t nodes) {
  symbols_.reserve(std::min(nodes, kMaxNodes));
  depths_.reserve(std::min(nodes, kMaxNodes));
}

}  // namespace teller::tpe
