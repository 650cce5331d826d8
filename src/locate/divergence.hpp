#pragma once

#include <vector>

#include "trace/diagnosis.hpp"
#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// Adds to a COLL_DIVERGENCE that a log tells what the traces show of it: the one rank whose order of collectives
/// breaks with its own habit at the end. Each rank is compared with its own earlier calls only, so that the traces need
/// not begin together and two ranks suffice. Where a step began since the call before, what always came there was left
/// out; within one step, what came instead is one too many.
void CompleteDivergence(const trace::Store& store, const trace::Trees& trees, trace::Finding& finding);

/// A stand-still inside a collective that ends when the ranks gave up on one is how long they waited: it goes behind
/// the finding that says so.
void PutEchoesBehind(const trace::Store& store, std::vector<trace::Finding>& findings);

}  // namespace teller::locate
