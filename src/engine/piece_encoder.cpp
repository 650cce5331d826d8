#include "engine/piece_encoder.hpp"

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/parallel.hpp"
#include "encode/symbol_ids.hpp"
#include "tpe/encoder.hpp"

namespace teller::engine {

base::Result<std::vector<EncodedPiece>> EncodePieces(const Structures& structures, const tpe::Vocabulary& vocabulary,
                                                     const std::vector<bool>& pieces, unsigned threads,
                                                     base::Progress* progress) {
  encode::VocabularySymbols symbols(vocabulary, structures.table);
  TELLER_TRY(symbols.Check());
  // The entry of each symbol, and whether the vocabulary knows its name.
  std::vector<uint32_t> rows(structures.table.size());
  for (uint32_t row = 0; row < rows.size(); ++row) rows[row] = row;
  std::vector<encode::UnknownNode> unknown;
  const std::vector<uint32_t> ids = symbols.Of(rows, &unknown);
  std::vector<bool> is_unknown(rows.size());
  for (const encode::UnknownNode& row : unknown) is_unknown[row.node] = true;

  const tpe::Encoder encoder(vocabulary);
  const size_t count = structures.pieces.size();
  const unsigned workers =
      static_cast<unsigned>(std::min<size_t>(base::ThreadCount(threads), std::max<size_t>(count, 1)));
  std::vector<EncodedPiece> out(count);
  std::vector<std::optional<base::Error>> errors(workers);
  std::atomic<size_t> next = 0;
  base::RunWorkers(workers, [&](unsigned worker) {
    tpe::EncodeScratch scratch;
    std::vector<uint32_t> piece_ids;
    for (size_t p = next++; p < count && !errors[worker]; p = next++) {
      if (!pieces.empty() && !pieces[p]) continue;
      if (progress != nullptr) {
        progress->Update("encoding", p, count);
        if (progress->cancelled()) errors[worker] = base::Error{.code = base::Code::kCancelled, .message = "stopped"};
      }
      const Structures::Piece& piece = structures.pieces[p];
      piece_ids.clear();
      for (const uint32_t row : structures.SymbolsOf(piece)) {
        piece_ids.push_back(ids[row]);
        out[p].unknown += is_unknown[row];
      }
      const base::Status encoded = encoder.Encode({piece_ids, structures.DepthsOf(piece)}, scratch, out[p].tokens);
      if (!encoded.ok()) errors[worker] = encoded.error();
    }
  });
  for (auto& error : errors) {
    if (error) return std::move(*error);
  }
  return out;
}

}  // namespace teller::engine
