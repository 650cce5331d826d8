#pragma once

#include <string_view>
#include <vector>

#include "tree/collective_match.hpp"

namespace teller::tree {

/// True for names that custom communication kernels are known to have (all-reduce of vLLM, SGLang, TensorRT-LLM and
/// flashinfer, DeepEP, symmetric memory, NVSHMEM). Only a hint: what a kernel does across ranks decides.
bool HintsAtCommunication(std::string_view name);

/// True when `group`'s members leave together although they come apart: where one rank's arrival is unusually early or
/// late against the other's, its end is not, so that its stay makes up for it. Ranks that run the same kernels in near
/// lockstep fail: there an end is as late as its begin. Constant differences of clocks, of arrivals or of speed prove
/// nothing and are left out. With a `hint` in the name fewer and less clear cases suffice. Needs labels; wants the
/// group to be certain.
bool LeaveTogether(const trace::Store& store, const MatchedGroup& group, bool hint);

/// Groups of kernels that synchronize ranks though no library names them: candidates are kernels that ranks share by
/// name, whose name hints at it or whose length varies; those that leave together are kept, split into the sets of
/// ranks that do. A kernel that starts inside a collective found before it on its stream (programmatic dependent
/// launch) only waits for that one and is left out. `known` are the groups that libraries name.
std::vector<MatchedGroup> FindPeerKernels(const trace::Store& store, const std::vector<MatchedGroup>& known);

}  // namespace teller::tree
