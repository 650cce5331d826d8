#pragma once

#include <optional>
#include <vector>

#include "tree/graph_sequence.hpp"

namespace teller::tree {

/// Work of one graph launch, or of all launches of a step, as one sequence.
struct GraphReplayed {
  trace::ProcessRow process;
  int64_t batch = -1;
  std::vector<GraphToken> tokens;
  std::vector<uint32_t> streams;  ///< of each token: the row of its track
};

/// What is known of each element of a replay; module and op as in trace::GraphOrigin, confidence 0 = nothing.
using Attribution = std::vector<trace::GraphOrigin>;

/// Chooses references for replays and judges what alignments prove. Threads: confined.
class GraphMatcher {
 public:
  GraphMatcher(trace::Store& store, const std::vector<GraphReference>& references);

  /// Against the joined captures of a pass (`joined`) or against all others. Nothing where no reference fits.
  std::optional<Attribution> Match(const GraphReplayed& replay, bool joined);
  /// Replays that were not looked at because the work was bounded.
  uint64_t given_up() const { return given_up_; }

  /// Bound on the tables of all alignments of a run: some seconds.
  static constexpr uint64_t kMaxTableCells = 400'000'000;

 private:
  struct Candidate;
  struct Fit;

  std::vector<Candidate> Candidates(const GraphReplayed& replay, bool joined) const;
  int Distance(trace::ProcessRow replay, const GraphReference& reference) const;
  Alignment AlignTo(const GraphReplayed& replay, const GraphReference& reference);
  Attribution Judge(const GraphReplayed& replay, const Fit& fit, const std::vector<size_t>& twins);
  trace::StringId Common(trace::StringId a, trace::StringId b);

  trace::Store& store_;
  const std::vector<GraphReference>& references_;
  std::vector<std::vector<uint32_t>> families_;  // of each reference, sorted
  uint64_t cells_ = 0;
  uint64_t given_up_ = 0;
};

}  // namespace teller::tree
