#pragma once

#include <map>
#include <optional>
#include <vector>

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// A step that lost time to transfers.
struct TransferHit {
  Nanos lost = 0;
  uint32_t step = 0;
};

using TransferHits = std::map<uint32_t, std::vector<TransferHit>>;  // process -> hits in order

/// What goes from one rank to another, as the stages of a pipeline do it.
struct Route {
  trace::ProcessRow from;
  trace::ProcessRow to;

  friend auto operator<=>(const Route&, const Route&) = default;
};

/// The way that a send and its receive take; none of collectives. Where nothing says who sends, the lower rank does:
/// later stages have higher ones.
std::optional<Route> RouteOf(const trace::Store& store, const trace::Collective& collective);

/// How long data was on its way: of a send and its receive from when both were there until the receiver has it, as a
/// sender returns once its data has left.
Nanos TransferOf(const trace::Collective& collective);

/// Steps in which transfers that run as kernels became slower and stayed so for a while.
struct TransferShift {
  TransferHits hits;           ///< empty where there is no shift
  std::optional<Route> route;  ///< where it is what one rank sends another; none of collectives
  Nanos usual = 0;             ///< of one such transfer
  double false_alarm = 1;
};

/// When a collective's kernel was launched; its own begin where that is not known.
Nanos LaunchedAt(const Scene& scene, const trace::CollectiveMember& member);

/// Transfers begin when the last rank has arrived and depend on nobody's work; on a device hardly anything else
/// disturbs them. Each is compared with others of its group, kind and size, and each step with those before and after.
/// What one rank sends another is a series of its own for each two.
TransferShift FindTransferShift(const Scene& scene);

}  // namespace teller::locate
