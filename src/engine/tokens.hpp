#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "encode/attributes.hpp"
#include "encode/forest.hpp"
#include "encode/symbol_ids.hpp"
#include "engine/engine.hpp"
#include "engine/vocabulary.hpp"
#include "tpe/tokens.hpp"

namespace teller::engine {

/// Which segments of a run are encoded.
struct TokenOptions {
  std::optional<uint32_t> step;  ///< only steps with this index
  std::optional<int> rank;       ///< only this rank
  bool all = false;              ///< also what lies outside of steps; without it the steps, or all when there are none
  const trace::Diagnosis* diagnosis = nullptr;  ///< of the run: tokens that hold its evidence are told
};

/// A node that proves a finding of the run's diagnosis.
struct TokenEvidence {
  uint32_t token = 0;
  uint32_t offset = 0;    ///< which of the token's nodes, in pre-order from 0
  uint32_t finding = 0;   ///< index into Diagnosis::findings
  uint32_t evidence = 0;  ///< index into Finding::evidence
};

/// A finding that holds a segment's step for abnormal.
struct Accusation {
  uint32_t finding = 0;  ///< index into Diagnosis::findings
  double score = 0;      ///< that of the step
};

/// One segment as tokens.
struct EncodedSegment {
  encode::Segment segment;
  encode::Forest forest;
  tpe::Tokens tokens;
  std::vector<encode::TokenAttributes> attributes;  ///< one a token
  std::vector<encode::UnknownNode> unknown;         ///< order: by node
  std::vector<Accusation> accusations;              ///< order: as in the diagnosis
  std::vector<TokenEvidence> evidence;              ///< order: by node, then as in the diagnosis
};

/// Encodes a run's segments, one after the other, in their order. Residuals are against what is normal in the run
/// itself (encode::NodeNormals). Stops at the first error of `sink`. Errors: kNotFound (the run holds no spans, or none
/// that was asked for), kBadFormat (vocabulary without the layers), those of `sink`, kCancelled.
base::Status EncodeRun(const Run& run, const NamedVocabulary& vocabulary, const TokenOptions& options,
                       base::Progress* progress, const std::function<base::Status(const EncodedSegment&)>& sink);

}  // namespace teller::engine
