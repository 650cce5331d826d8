#pragma once

#include <nlohmann/json.hpp>

#include "report/page.hpp"
#include "trace/store.hpp"

namespace teller::report {

/// NCCL communicators that the logs show: ranks, channels, transports per peer, links with GB/s. Nothing when there are
/// none. Long lists are cut unless the page shows all.
void AddCommunicators(const trace::Store& store, Page& page);
nlohmann::ordered_json CommunicatorsToJson(const trace::Store& store);

}  // namespace teller::report
