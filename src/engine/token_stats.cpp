#include "engine/token_stats.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/parallel.hpp"
#include "encode/symbol_ids.hpp"
#include "engine/piece_encoder.hpp"

namespace teller::engine {

namespace {

void Add(TokenCounts& to, const Structures::Piece& piece, const EncodedPiece& encoded) {
  ++to.steps;
  to.nodes += piece.size;
  to.structure += piece.structure;
  to.tokens += encoded.tokens.size();
  to.unknown += encoded.unknown;
}

}  // namespace

base::Result<TokenStats> MeasureTokens(const Structures& structures, const tpe::Vocabulary& vocabulary,
                                       unsigned threads, base::Progress* progress) {
  auto encoded = EncodePieces(structures, vocabulary, {}, threads, progress);
  if (!encoded) return encoded.error();
  TokenStats stats;
  std::map<std::string, TokenCounts> engines;
  std::map<std::string, std::set<uint32_t>> files;
  std::vector<uint64_t> uses(vocabulary.size());
  for (size_t p = 0; p < structures.pieces.size(); ++p) {
    const Structures::Piece& piece = structures.pieces[p];
    const EncodedPiece& one = encoded.value()[p];
    if (!structures.IsStep(piece)) {
      Add(stats.outside, piece, one);
      continue;
    }
    const std::string& engine = structures.sources[piece.source].engine;
    Add(engines[engine], piece, one);
    Add(stats.steps, piece, one);
    files[engine].insert(piece.source);
    for (const uint32_t id : one.tokens.ids) ++uses[id];
  }
  for (auto& [engine, counts] : engines) {
    counts.files = files[engine].size();
    stats.steps.files += counts.files;
    stats.engines.push_back({engine, counts});
  }
  for (uint32_t id = 0; id < uses.size(); ++id) {
    if (uses[id] > 0) stats.used.push_back({id, uses[id], uses[id] * vocabulary.node_count(id)});
  }
  std::stable_sort(stats.used.begin(), stats.used.end(),
                   [](const TokenUse& a, const TokenUse& b) { return a.nodes > b.nodes; });
  return stats;
}

}  // namespace teller::engine
