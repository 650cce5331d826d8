#pragma once

#include <string>

#include "trace/diagnosis.hpp"
#include "trace/request.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// Adds evidence to `finding` under the number that is free and returns its mark, "[E2]".
std::string Cite(trace::Finding& finding, trace::Evidence evidence);

/// The same of what the counters in `file` tell of the time `at`.
std::string CiteCounters(trace::Finding& finding, trace::FileRow file, trace::Nanos at, std::string text);

/// The same of what a request's recorded times tell.
std::string CiteRequest(trace::Finding& finding, const trace::Store& store, const trace::Request& request,
                        trace::Nanos at, std::string text);

}  // namespace teller::locate
