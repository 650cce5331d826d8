#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokens.hpp"

namespace teller::report {

/// Encoded segments as one JSON object, schema "teller.tokens/1" (docs/reference/teller.tokens-1.md), piece by piece:
/// what TokensHead gives, then segments with "," between them, then what TokensTail gives.
std::string TokensHead(const engine::NamedVocabulary& vocabulary);
std::string TokensSegment(const engine::Run& run, const engine::EncodedSegment& encoded);
std::string TokensTail();

/// One segment of such an object, as far as decoding needs it.
struct ReadSegment {
  nlohmann::ordered_json label;  ///< its members that are no columns: kind, rank, step, name ...
  std::vector<uint32_t> ids;
  std::vector<uint32_t> depths;
  std::vector<encode::UnknownNode> unknown;
};
struct ReadTokens {
  std::string vocabulary;  ///< its name
  uint64_t fingerprint = 0;
  std::vector<ReadSegment> segments;
};

/// Reads what was written. Errors: kBadFormat (no JSON, no such schema, a column is missing or has another length),
/// kUnsupported (another version of the schema).
base::Result<ReadTokens> TokensFromJson(std::string_view text, const std::string& path);

/// A hash as hexadecimal text of 16 digits.
std::string HexText(uint64_t hash);

}  // namespace teller::report
