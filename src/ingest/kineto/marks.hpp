#pragma once

#include <vector>

#include "ingest/common/block.hpp"

namespace teller::ingest {

/// Pairs begins with ends, per lane, in time order (input order for equal times); an end closes the innermost open
/// begin. A begin without an end becomes a span up to `end_of_recording`. Results are appended to `spans` in order of
/// their begins' input; `tally` and `diagnostics` get what became of each mark.
void PairMarks(const std::vector<DraftSpan>& marks, trace::Nanos end_of_recording, trace::FileRow file,
               std::vector<DraftSpan>& spans, Tally& tally, base::Diagnostics& diagnostics);

}  // namespace teller::ingest
