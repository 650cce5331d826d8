#pragma once

#include <span>
#include <string>

#include "engine/tokens.hpp"
#include "report/page.hpp"
#include "report/sink.hpp"
#include "report/tokens_read.hpp"
#include "tpe/decoder.hpp"

namespace teller::report {

/// Lists segments: nodes, tokens, what was saved, the worst constituent of all. Threads: confined.
class TokensText {
 public:
  /// `diagnosis`: that of TokenOptions; null = the run was not diagnosed. All outlive this.
  TokensText(const engine::Run& run, const engine::NamedVocabulary& vocabulary, const trace::Diagnosis* diagnosis,
             const TextOptions& options)
      : run_(run), vocabulary_(vocabulary), diagnosis_(diagnosis), options_(options) {}

  std::string Head() const;
  /// What proves findings and was in no token: `shown` pieces of evidence were.
  std::string Tail(size_t shown) const;
  /// A line and its worst constituent; with `tokens`, the same for each token. Errors: those of the sink.
  base::Status WriteSegment(const engine::EncodedSegment& encoded, bool tokens, const Sink& sink) const;

 private:
  std::string Findings() const;
  std::string Proofs(std::span<const engine::TokenEvidence> evidence) const;
  std::string Worst(const engine::EncodedSegment& encoded, size_t token) const;

  const engine::Run& run_;
  const engine::NamedVocabulary& vocabulary_;
  const trace::Diagnosis* diagnosis_;
  TextOptions options_;
};

/// A decoded segment as an indented tree, one line a node, piece by piece. Errors: those of the sink.
base::Status WriteForestText(const tpe::Vocabulary& vocabulary, const ReadSegment& segment, const tpe::Forest& forest,
                             const TextOptions& options, const Sink& sink);

/// A decoded segment as one JSON object, piece by piece: its label, the distinct symbols, and the columns `symbol` and
/// `depth`. Errors: those of the sink.
base::Status WriteForestJson(const tpe::Vocabulary& vocabulary, const ReadSegment& segment, const tpe::Forest& forest,
                             const Sink& sink);

}  // namespace teller::report
