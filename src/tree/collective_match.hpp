#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::tree {

/// One rank's spans of one sort of collective, in time order.
struct RankSpans {
  int rank = -1;
  trace::ProcessRow process;
  std::vector<uint32_t> spans;
  std::vector<int64_t> labels;  ///< parallel: spans with one label on several ranks are one collective
};

/// The ranks' spans of one sort of collective, labelled.
struct MatchedGroup {
  std::string key;
  std::vector<RankSpans> ranks;  ///< order: by rank; no two of one rank
  bool by_sequence = false;      ///< labels are the communicator's own numbers
  bool certain = true;           ///< false where another pairing of the same spans would agree as well
  bool point_to_point = false;
  bool inferred = false;  ///< nothing names it a collective: see peer_kernels.hpp
};

/// Labels the spans of `ranks` so that members of one collective have one label: by sequence number where every span
/// has one, else the n-th of one rank meets the n-th of another after the shift that makes their ends agree best
/// (profilers start at unequal steps). Ends agree when their difference is the same each time, whatever it is and
/// however it drifts: clocks that are seconds apart change nothing.
void LabelMembers(const trace::Store& store, MatchedGroup& group);

}  // namespace teller::tree
