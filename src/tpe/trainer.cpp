#include "tpe/trainer.hpp"

#include <algorithm>
#include <atomic>

#include "base/parallel.hpp"
#include "tpe/bases.hpp"
#include "tpe/encoder.hpp"
#include "tpe/merge_trainer.hpp"
#include "tpe/slots.hpp"

namespace teller::tpe {
namespace {

static_assert(Corpus::kNoSymbol == slots::kBarrier, "the corpus's marks are the trainer's barriers");

/// Encodes the sequences with the merges there are, in place.
base::Status EncodeInPlace(const Vocabulary& vocabulary, unsigned threads, Corpus::Columns& columns) {
  const Encoder encoder(vocabulary);
  std::vector<EncodeScratch> scratches(threads);
  std::vector<Tokens> outputs(threads);
  std::vector<base::Status> failures(threads);
  std::atomic<size_t> next = 0;
  base::RunWorkers(threads, [&](unsigned worker) {
    Tokens& tokens = outputs[worker];
    for (size_t i = next.fetch_add(1); i < columns.sequences.size(); i = next.fetch_add(1)) {
      const Corpus::Sequence& sequence = columns.sequences[i];
      const std::span symbols(columns.symbols.data() + sequence.begin, sequence.size);
      const std::span depths(columns.depths.data() + sequence.begin, sequence.size);
      const base::Status status = encoder.Encode({symbols, depths}, scratches[worker], tokens);
      if (!status) failures[worker] = status;
      for (size_t token = 0; token < tokens.size(); ++token) {
        const uint32_t nodes = vocabulary.node_count(tokens.ids[token]);
        if (nodes > 1)
          slots::Join(symbols.data(), tokens.first_node[token], tokens.first_node[token] + 1, nodes, tokens.ids[token]);
        for (uint32_t node = 1; node + 1 < nodes; ++node) symbols[tokens.first_node[token] + node] = slots::kDead;
      }
    }
  });
  for (const base::Status& failure : failures) TELLER_TRY(failure);
  return {};
}

}  // namespace

base::Result<Vocabulary> Extend(const Vocabulary& old, Corpus&& corpus, const TrainOptions& options,
                                TrainStats* stats) {
  TELLER_TRY(CheckOptions(options));
  Vocabulary vocabulary = old;
  const auto bases = AppendBases(corpus, options, vocabulary);
  if (!bases) return bases.error();
  TrainStats counted;
  counted.nodes = corpus.node_count();
  counted.weighted_nodes = corpus.weighted_nodes();
  const unsigned threads = base::ThreadCount(options.threads);
  Corpus::Columns columns = corpus.TakeColumns();
  for (uint32_t& symbol : columns.symbols) {
    if (symbol != Corpus::kNoSymbol) symbol = (*bases)[symbol];
  }
  if (vocabulary.merge_count() > 0) TELLER_TRY(EncodeInPlace(vocabulary, threads, columns));
  for (const uint32_t slot : columns.symbols) counted.tokens += slots::IsToken(slot);
  MergeTrainer trainer(std::move(columns), options, vocabulary, counted);
  base::Status status;
  Crew::Gather(threads, [&](Crew& crew) { status = trainer.Run(crew); });
  TELLER_TRY(status);
  counted.tokens -= counted.merged;
  if (stats != nullptr) *stats = counted;
  return vocabulary;
}

base::Result<Vocabulary> Train(Corpus&& corpus, const TrainOptions& options, TrainStats* stats) {
  return Extend(Vocabulary(), std::move(corpus), options, stats);
}

}  // namespace teller::tpe
