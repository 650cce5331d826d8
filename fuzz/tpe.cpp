// Any bytes as a vocabulary, and what it makes of any forest. Input: numbers of classes, entries and merges, size of
// the body in two bytes, the body (a right header and checksum are put before it), then two bytes for each node and
// token. Beyond "no crash": fast, streaming and plain encoding agree, and decoding gives the forest back.
#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "tpe/decoder.hpp"
#include "tpe/encoder.hpp"
#include "tpe/plain.hpp"
#include "tpe/stream.hpp"
#include "tpe/vocabulary_file.hpp"

using namespace teller;

namespace {

std::string File(const uint8_t* counts, std::string_view body) {
  const std::string header = "teller-tpe-vocabulary 1\nclasses " + std::to_string(counts[0]) + "\nentries " +
                             std::to_string(counts[1]) + "\nmerges " + std::to_string(counts[2]) + "\nbody-bytes " +
                             std::to_string(body.size()) + "\n";
  const std::string covered = header + std::string(body);
  const uint32_t crc = crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(covered.data()), covered.size());
  std::string hex;
  for (int shift = 28; shift >= 0; shift -= 4) hex.push_back("0123456789abcdef"[crc >> shift & 15]);
  return header + "checksum " + hex + "\n" + std::string(body);
}

bool Same(const tpe::Tokens& a, const tpe::Tokens& b) {
  return a.ids == b.ids && a.depths == b.depths && a.first_node == b.first_node;
}

void CheckForest(const tpe::Vocabulary& vocabulary, const tpe::Forest& forest) {
  const tpe::Encoder encoder(vocabulary);
  tpe::EncodeScratch scratch;
  tpe::Tokens fast, streamed;
  const auto plain = tpe::EncodePlain(vocabulary, {forest.symbols, forest.depths});
  const auto status = encoder.Encode({forest.symbols, forest.depths}, scratch, fast);
  TELLER_CHECK(status.ok() == plain.has_value());
  tpe::StreamEncoder stream(encoder, {.min_batch = 4});
  bool all = true;
  for (size_t i = 0; i < forest.symbols.size(); ++i) {
    all = stream.Push(forest.symbols[i], forest.depths[i], streamed).ok() && all;
  }
  TELLER_CHECK(stream.End(streamed).ok());
  TELLER_CHECK(all == status.ok());
  if (!status.ok()) return;
  TELLER_CHECK(Same(fast, *plain) && Same(fast, streamed));
  const auto back = tpe::Decode(vocabulary, fast.ids, fast.depths);
  TELLER_CHECK(back.has_value() && back->symbols == forest.symbols && back->depths == forest.depths);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)tpe::ParseVocabulary({reinterpret_cast<const char*>(data), size});
  if (size < 5) return 0;
  const size_t body_size = std::min<size_t>(data[3] | size_t{data[4]} << 8, size - 5);
  const std::string_view body(reinterpret_cast<const char*>(data) + 5, body_size);
  const auto vocabulary = tpe::ParseVocabulary(File(data, body));
  if (!vocabulary) return 0;
  const auto back = tpe::ParseVocabulary(tpe::SerializeVocabulary(*vocabulary));
  TELLER_CHECK(back.has_value() && *back == *vocabulary);
  (void)tpe::VocabularyJson(*vocabulary);
  tpe::Forest forest, tokens;
  uint32_t depth = 3;
  for (size_t i = 5 + body_size; i + 1 < size && forest.symbols.size() < 2000; i += 2) {
    depth = static_cast<uint32_t>(std::clamp<int64_t>(int64_t{depth} + 1 - data[i + 1] % 8, 0, 1 << 20));
    forest.symbols.push_back(data[i]);
    forest.depths.push_back(depth);
    tokens.symbols.push_back(data[i] & 0x3F);
    tokens.depths.push_back(data[i + 1] & 7);
  }
  CheckForest(*vocabulary, forest);
  (void)tpe::Decode(*vocabulary, tokens.symbols, tokens.depths, 1 << 16);
  return 0;
}
