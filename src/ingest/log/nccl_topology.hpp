#pragma once

#include "trace/store.hpp"

namespace teller::ingest {

/// Puts together the communicators that the NCCL lines of all logs speak of and fills `store.communicators`: ranks,
/// channels, transports per peer, rings, trees, links of the machine. To be called once, when every log was read.
/// Lines that belong to no communicator are counted (log.nccl-unassigned).
/// Cost: one pass over the NCCL lines; what is kept is bounded by them.
void BuildCommunicators(trace::Store& store);

}  // namespace teller::ingest
