#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "encode/symbol_ids.hpp"
#include "tpe/decoder.hpp"

namespace teller::report {

/// One segment of "teller.tokens/1" (see tokens_json.hpp), as far as decoding needs it.
struct ReadSegment {
  nlohmann::ordered_json label;  ///< its members that are no columns: kind, rank, step, nodes ...
  uint64_t nodes = 0;            ///< as the segment states them
  std::vector<uint32_t> ids;
  std::vector<uint32_t> depths;
  std::vector<encode::UnknownNode> unknown;
};
struct ReadTokens {
  std::string vocabulary;  ///< its name
  uint64_t fingerprint = 0;
  std::vector<ReadSegment> segments;
};

/// Reads what was written. Members that decoding has no use for are passed over. Memory: columns are read as numbers,
/// not as JSON values, and nothing deeper than 8 lists and objects is read. Errors: kBadFormat (no JSON, no such
/// schema, too deep, a column is missing or has another length), kUnsupported (another version of the schema).
base::Result<ReadTokens> TokensFromJson(std::string_view text, const std::string& path);

/// The nodes of a segment that was read. What the segment states about them must hold: their number, and that exactly
/// the unknown ones have hashes, in ascending order. Errors: those of tpe::Decode; kBadFormat with the token.
base::Result<tpe::Forest> DecodeSegment(const tpe::Vocabulary& vocabulary, const ReadSegment& segment,
                                        uint64_t max_nodes);

}  // namespace teller::report
