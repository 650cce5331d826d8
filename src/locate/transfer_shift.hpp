#pragma once

#include <map>
#include <vector>

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// A step that lost time to transfers.
struct TransferHit {
  Nanos lost = 0;
  uint32_t step = 0;
};

using TransferHits = std::map<uint32_t, std::vector<TransferHit>>;  // process -> hits in order

/// Steps in which the transfers of collectives that run as kernels became slower and stayed so for a while.
struct TransferShift {
  TransferHits hits;  ///< empty where there is no shift
  Nanos usual = 0;    ///< of one such collective
  double false_alarm = 1;
};

/// When a collective's kernel was launched; its own begin where that is not known.
Nanos LaunchedAt(const Scene& scene, const trace::CollectiveMember& member);

/// Transfers begin when the last rank has arrived and depend on nobody's work; on a device hardly anything else
/// disturbs them. Each is compared with others of its group, kind and size, and each step with those before and after.
TransferShift FindTransferShift(const Scene& scene);

}  // namespace teller::locate
