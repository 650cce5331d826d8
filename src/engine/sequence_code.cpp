#include "engine/sequence_code.hpp"

#include <zlib.h>
#include <zstd.h>

#include <map>

#include "base/status.hpp"

namespace teller::engine {

namespace {

void AppendVarint(uint64_t value, std::string& out) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

constexpr int kZstdLevel = 19;
constexpr int kGzipWindow = 15 + 16;  // with gzip's frame

/// Copies all but the nodes; `emit(piece position, row, closes)` adds those.
template <class Emit>
Structures Rewritten(const Structures& structures, const Emit& emit) {
  Structures out;
  out.table = structures.table;
  out.sources = structures.sources;
  out.spans = structures.spans;
  for (Structures::Piece piece : structures.pieces) {
    const auto symbols = structures.SymbolsOf(piece);
    const auto depths = structures.DepthsOf(piece);
    piece.begin = out.symbols.size();
    for (size_t i = 0; i < symbols.size(); ++i) {
      const uint32_t closes = i + 1 < symbols.size() && depths[i + 1] <= depths[i] ? depths[i] - depths[i + 1] + 1 : 0;
      emit(out, symbols[i], closes);
    }
    piece.size = static_cast<uint32_t>(out.symbols.size() - piece.begin);
    out.pieces.push_back(piece);
  }
  out.depths.assign(out.symbols.size(), 0);
  return out;
}

}  // namespace

std::string EncodedBytes(std::span<const uint32_t> numbers, std::span<const uint32_t> depths) {
  std::string out;
  int64_t before = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    AppendVarint(numbers[i], out);
    if (depths.empty()) continue;
    const int64_t step = int64_t{depths[i]} - before;
    before = depths[i];
    AppendVarint(static_cast<uint64_t>(step) << 1 ^ static_cast<uint64_t>(step >> 63), out);
  }
  return out;
}

uint64_t GzipBytes(std::string_view bytes) {
  z_stream stream{};
  TELLER_CHECK(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  const uint64_t size = stream.total_out;
  deflateEnd(&stream);
  return size;
}

uint64_t ZstdBytes(std::string_view bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), kZstdLevel);
  TELLER_CHECK(ZSTD_isError(size) == 0);
  return size;
}

Structures WithClosingMarks(const Structures& structures) {
  uint32_t mark = UINT32_MAX;
  return Rewritten(structures, [&mark](Structures& out, uint32_t symbol, uint32_t closes) {
    if (mark == UINT32_MAX) mark = out.table.Row({encode::Layer::kOther, ")"});
    out.symbols.push_back(symbol);
    out.symbols.insert(out.symbols.end(), closes, mark);
  });
}

Structures WithFoldedMarks(const Structures& structures) {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> rows;
  return Rewritten(structures, [&rows](Structures& out, uint32_t symbol, uint32_t closes) {
    const auto [it, fresh] = rows.try_emplace({symbol, closes}, 0);
    if (fresh) {
      encode::Symbol folded = out.table.At(symbol);
      folded.name += " )" + std::to_string(closes);
      it->second = out.table.Row(folded);
    }
    out.symbols.push_back(it->second);
  });
}

}  // namespace teller::engine
