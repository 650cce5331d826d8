#pragma once

#include <vector>

#include "locate/hypothesis.hpp"
#include "trace/diagnosis.hpp"

namespace teller::locate {

/// Collectives of devices whose data goes over TCP between all ranks that use a network, by NCCL's own words, and that
/// take four tenths of the steps' time or more although all ranks are there: NET_PATH_WRONG. One condition alone proves
/// nothing: NCCL names a network also where nobody uses it, and large collectives may take long on a fast one.
/// Between hosts that are not known to have anything faster it is unlikely enough to be a suspect, no more.
std::vector<trace::Finding> FindNetPath(const Scene& scene);

}  // namespace teller::locate
