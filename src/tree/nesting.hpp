#pragma once

#include "trace/store.hpp"

namespace teller::tree {

/// Fills Spans::parent and Spans::depth. A span's parent is the innermost span on its track that contains it.
/// Overlap policy (docs/design/overlap-policy.md), one diagnostic per case: a span that only partly overlaps the open
/// one becomes a sibling of it under the first ancestor that contains it wholly. GPU streams do not nest kernels.
void Nest(trace::Store& store, unsigned threads);

}  // namespace teller::tree
