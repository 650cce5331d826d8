#pragma once

#include <string>

#include "engine/tokens.hpp"
#include "report/page.hpp"
#include "report/tokens_read.hpp"
#include "tpe/decoder.hpp"

namespace teller::report {

/// Lists segments: nodes, tokens, what was saved, the worst constituent of all. Threads: confined.
class TokensText {
 public:
  TokensText(const engine::Run& run, const engine::NamedVocabulary& vocabulary, const TextOptions& options)
      : run_(run), vocabulary_(vocabulary), options_(options) {}

  std::string Head() const;
  /// One line; with `tokens`, one more for each token.
  std::string Segment(const engine::EncodedSegment& encoded, bool tokens) const;

 private:
  std::string Worst(const engine::EncodedSegment& encoded, size_t token) const;

  const engine::Run& run_;
  const engine::NamedVocabulary& vocabulary_;
  TextOptions options_;
};

/// A decoded segment as an indented tree, one line a node.
std::string ForestText(const tpe::Vocabulary& vocabulary, const ReadSegment& segment, const tpe::Forest& forest,
                       const TextOptions& options);

/// A decoded segment as one JSON object: its label, the distinct symbols, and the columns `symbol` and `depth`.
std::string ForestJson(const tpe::Vocabulary& vocabulary, const ReadSegment& segment, const tpe::Forest& forest);

}  // namespace teller::report
