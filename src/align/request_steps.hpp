#pragma once

#include <vector>

#include "trace/request.hpp"
#include "trace/step.hpp"

namespace teller::align {

/// The steps of one engine in order of time: of several ranks that run in lockstep, those of the lowest one.
struct Lane {
  trace::ProcessRow process;
  std::vector<uint32_t> steps;     ///< indices into Trees::steps
  std::vector<uint32_t> prefills;  ///< positions in `steps` of steps that prefill
  std::vector<uint32_t> decodes;   ///< positions in `steps` of steps that decode
};

/// One lane an engine; only steps whose marks tell how many requests they prefill and decode count.
std::vector<Lane> EngineLanes(const std::vector<trace::Step>& steps);

/// Finds the steps that served `request`, pins its phases to them and sets its parts (own, others, blocked, between).
///
/// A request is prefilled by one step (or several, when its prompt is cut into chunks) that begins when it was admitted
/// and ends when its first token exists; after that every decoding step of the engine serves it until it has all its
/// tokens. So the steps follow from one choice, the prefill step, and times and counts of the request test it: how long
/// prefill and decode took, how many tokens the prompt and the output have. It is exact when one choice passes and no
/// other comes near. A request that began or ended outside the recorded steps, or was preempted, gets those that its
/// phases overlap, as a part.
void FindSteps(const std::vector<trace::Step>& steps, const std::vector<Lane>& lanes,
               const trace::RequestRecord& stated, trace::Request& request);

/// Shares of all requests: `tokens`, `inside` and `share` of their steps and the parts of their model phases; and who
/// blocked whom. Call once, after FindSteps of all. Requests that together claim more of a step than it served keep
/// their steps as a part only.
void ShareSteps(const std::vector<trace::Step>& steps, const std::vector<Lane>& lanes,
                std::vector<trace::Request>& requests);

}  // namespace teller::align
