#include "tpe/bases.hpp"

#include <algorithm>
#include <string>
#include <tuple>

namespace teller::tpe {

base::Status CheckOptions(const TrainOptions& options) {
  if (options.max_token_nodes < 2 || options.max_token_nodes > kMaxTokenNodes) {
    return base::Error{base::Code::kUsage, "nodes of a token are bounded by " +
                                               std::to_string(options.max_token_nodes) + ", expected 2 to " +
                                               std::to_string(kMaxTokenNodes)};
  }
  if (options.max_merges >= kMaxEntries) {
    return base::Error{base::Code::kUsage, std::to_string(options.max_merges) + " merges are wanted, at most " +
                                               std::to_string(kMaxEntries - 1) + " are possible"};
  }
  return {};
}

base::Result<std::vector<uint32_t>> AppendBases(const Corpus& corpus, const TrainOptions& options,
                                                Vocabulary& vocabulary) {
  std::vector<std::string> names = corpus.classes();
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (vocabulary.FindClass(name)) continue;
    if (const auto added = vocabulary.AddClass(name); !added) return added.error();
  }
  std::vector<uint32_t> class_of;
  for (const std::string& name : corpus.classes()) class_of.push_back(*vocabulary.FindClass(name));

  std::vector<uint64_t> counts(corpus.symbol_count(), 0);
  for (const Corpus::Sequence& sequence : corpus.sequences()) {
    for (uint32_t i = 0; i < sequence.size; ++i) counts[corpus.symbols()[sequence.begin + i]] += sequence.weight;
  }
  std::vector<uint32_t> ids(corpus.symbol_count());
  std::vector<uint32_t> missing;
  for (uint32_t symbol = 0; symbol < corpus.symbol_count(); ++symbol) {
    const uint32_t class_index = class_of[corpus.symbol_class(symbol)];
    const Symbol known = vocabulary.SymbolFor(class_index, corpus.symbol_name(symbol));
    ids[symbol] = known.id;
    if (!known.known && counts[symbol] >= std::max<uint64_t>(1, options.min_base_count)) missing.push_back(symbol);
  }
  // A rule about contents only: neither the order of input nor that of hash tables is seen.
  const auto key = [&](uint32_t symbol) {
    return std::tuple(~counts[symbol], std::string_view(corpus.classes()[corpus.symbol_class(symbol)]),
                      corpus.symbol_name(symbol));
  };
  std::sort(missing.begin(), missing.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  if (missing.size() > options.max_bases) missing.resize(options.max_bases);
  for (const uint32_t symbol : missing) {
    const auto added = vocabulary.AddBase(class_of[corpus.symbol_class(symbol)], corpus.symbol_name(symbol));
    if (!added) return added.error();
    ids[symbol] = *added;
  }
  return ids;
}

}  // namespace teller::tpe
