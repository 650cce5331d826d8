#pragma once

#include <string>

#include "trace/request.hpp"
#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// What is usual for a request of this run: medians over the requests that went well, each over those of which it is
/// known (Request::tells); 0 where it is known of none.
struct UsualRequest {
  trace::Nanos front = 0;
  trace::Nanos queue = 0;
  trace::Nanos output = 0;
  double prefill_per_token = 0;  ///< ns a prompt token
  trace::Nanos prefill = 0;
  trace::Nanos tpot = 0;  ///< of the decode phase
  size_t requests = 0;    ///< that this was learned from
};
UsualRequest LearnUsual(const trace::Trees& trees);

/// Why a request took as long as it did, in one or two sentences: the phase that exceeds the usual most, and what
/// filled it (another request's prompt, time between steps, the profiler's export). Says so when nothing stands out.
std::string RequestReason(const trace::Trees& trees, const UsualRequest& usual, trace::RequestRow row);

}  // namespace teller::locate
