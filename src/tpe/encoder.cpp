#include "tpe/encoder.hpp"

#include <string>

#include "tpe/encoder_tables.hpp"

namespace teller::tpe {

struct EncodeScratch::State {
  RankScratch rank;
};

EncodeScratch::EncodeScratch() : state_(std::make_unique<State>()) {}
EncodeScratch::~EncodeScratch() = default;
EncodeScratch::EncodeScratch(EncodeScratch&&) noexcept = default;
EncodeScratch& EncodeScratch::operator=(EncodeScratch&&) noexcept = default;

Encoder::Encoder(const Vocabulary& vocabulary, uint64_t hash_seed)
    : tables_(std::make_unique<Tables>(vocabulary, hash_seed)) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

base::Status Encoder::Encode(const ForestView& forest, EncodeScratch& scratch, Tokens& out, EncodeStats* stats) const {
  out.clear();
  TELLER_TRY(ValidateForest(forest));
  for (size_t i = 0; i < forest.size(); ++i) {
    const uint32_t symbol = forest.symbols[i];
    if (!tables_->IsBase(symbol)) {
      return base::Error{base::Code::kBadFormat,
                         "symbol is " + std::to_string(symbol) + ", expected a base id of the vocabulary",
                         {},
                         "node " + std::to_string(i)};
    }
  }
  uint64_t steps = 0;
  scratch.state_->rank.Encode(tables_->rank, forest, 0, out, steps);
  if (stats != nullptr) {
    stats->nodes += forest.size();
    stats->tokens += out.size();
    stats->steps += steps;
  }
  return {};
}

}  // namespace teller::tpe
