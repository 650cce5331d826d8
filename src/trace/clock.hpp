#pragma once

#include <cstdint>
#include <vector>

#include "trace/types.hpp"

namespace teller::trace {

/// How the clock of one recorded process lies against the run's reference clock. A time t of its own is, on the
/// reference, t - offset - drift * (t - middle).
struct ProcessClock {
  bool linked = false;       ///< tied to the reference by what the trace proves; the reference itself is
  bool corrected = false;    ///< its times in the store were shifted to the reference
  Nanos middle = 0;          ///< of the calibrated window, on its own clock
  Nanos half_window = 0;     ///< the window reaches this far to both sides
  Nanos offset = 0;          ///< how far it is ahead of the reference at `middle`
  double drift = 0;          ///< ns that it gains per ns of its own
  Nanos error = 0;           ///< half width of what stays open against the reference, anywhere in the window
  Nanos spread = 0;          ///< standard deviation of one collective's leaving times about the fit
  uint32_t collectives = 0;  ///< matched collectives that prove it
  uint32_t domain = 0;       ///< processes of one domain share a clock

  /// ns to take off a time `raw` of its own. Any finite `raw` will do.
  Nanos ShiftAt(Nanos raw) const;
  /// `raw` on the reference clock; kNoTime stays what it is. Order is kept: a later time never becomes an earlier one.
  Nanos ToReference(Nanos raw) const;
};

/// Half width of what stays open between two processes' times once both are on the reference clock; kUnknownClock where
/// nothing ties one to the other. A process against itself: 0.
Nanos PairError(const std::vector<ProcessClock>& clocks, ProcessRow a, ProcessRow b);
inline constexpr Nanos kUnknownClock = INT64_MAX;

}  // namespace teller::trace
