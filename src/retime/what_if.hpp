#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "retime/step_times.hpp"

namespace teller::retime {

/// What an operator's time is to be instead.
struct Wanted {
  enum class Kind : uint8_t {
    kNormal,    ///< what the same call takes in the run's other steps
    kFactor,    ///< recorded time times `factor`
    kDuration,  ///< `duration` each
  };
  Kind kind = Kind::kNormal;
  double factor = 1;          ///< >= 0
  trace::Nanos duration = 0;  ///< >= 0
};

/// "normal", a factor ("0.5x", "3x") or a duration ("200us", "1.5 ms"). Errors: kUsage.
base::Result<Wanted> ParseWanted(const std::string& text);

/// Which calls to change. Without a rank: the rank where they take longest in that step.
struct Question {
  uint32_t step = 0;
  std::optional<int> rank;
  std::string op;  ///< name as in the trace, or a part that fits one name only
  Wanted to;
};

/// A step of one process before and after the change.
struct StepChange {
  uint32_t step = 0;  ///< index into Trees::steps
  trace::Nanos recorded = 0;
  trace::Nanos modelled = 0;  ///< replayed without changes: its distance to `recorded` is the model's error
  trace::Nanos changed = 0;   ///< replayed with the change

  /// What the change adds (below 0: saves).
  trace::Nanos difference() const { return changed - modelled; }
  /// The step's duration with the change: as recorded, but for the difference.
  trace::Nanos expected() const { return recorded + difference(); }
};

struct Answer {
  std::string op;                     ///< its full name
  std::vector<trace::SpanRow> calls;  ///< that were changed
  trace::Nanos calls_recorded = 0;    ///< their time
  trace::Nanos calls_wanted = 0;
  uint64_t compared = 0;  ///< calls of other steps that tell what is normal
  StepChange step;
  std::vector<StepChange> others;  ///< the same step of other processes
  double recomputed = 0;           ///< share of the step's recorded time that follows from dependencies
  bool calls_usual = false;        ///< asked for normal, and they take what they take in other steps
  /// So, or a difference of less than one hundredth of the step or than the model's own error: nothing to be claimed.
  bool nothing_changes = false;
};

/// How long a step would have taken with some calls at another duration. Host calls are scaled with everything below
/// them; GPU work that they launched goes by the same factor. Errors: kNotFound (no such step, rank, operator; nothing
/// to compare with), kUsage.
base::Result<Answer> WhatIf(const trace::Store& store, const trace::Trees& trees, const Question& question);

}  // namespace teller::retime
