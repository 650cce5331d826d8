#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "inject/label.hpp"

namespace teller::score {

/// A step of the case as it was read, without judgement.
struct ReadStep {
  std::optional<int64_t> rank;
  uint32_t index = 0;
  std::string kind;  ///< "prefill", "decode", ...
  base::Nanos begin = base::kNoTime;
  base::Nanos end = base::kNoTime;
  base::Nanos gap = -1;
  bool observer = false;  ///< touched by the profiler's start or stop
};

/// One case with all that its label says about right answers.
struct Truth {
  std::string folder;  ///< as given
  inject::Label label;
  std::string origin;     ///< name of the recorded run that it is, or was made from ("params.run" of the label)
  std::string source;     ///< "real" when the label does not say ("retimed", "simulated")
  std::string magnitude;  ///< "x1-1.5", ... of factors, "0-0.25", ... of shares, a word of the injector, "not told"
  std::vector<std::string> accepted_ops;                ///< operator, module and names that stand for them
  bool steps_told = false;                              ///< the label says which steps are abnormal (or that none is)
  std::vector<std::vector<inject::Interval>> abnormal;  ///< for each abnormal step its times by rank, where given
  std::vector<uint32_t> abnormal_indices;               ///< abnormal steps that are given by ordinal only
  std::vector<uint32_t> ignored;                        ///< ordinals of steps not to count
  std::vector<inject::Interval> unfinished;  ///< of steps that some rank never finished, from their begin for ever

  bool steps_shown() const;  ///< no fault, or one that a trace can show (or whose label does not say where it shows)
  bool expected() const;     ///< a fault that one of the inputs can show, not the client alone
  bool horizontal() const;   ///< the culprit is one of several ranks
};

/// The recording that a re-timed case shares with others; empty for other cases.
std::string RecordingOf(const Truth& truth);

/// Errors: those of inject::ReadLabel; kBadFormat when the label has problems (the first of them).
base::Result<Truth> ReadTruth(const std::string& folder);

enum class StepTruth : uint8_t { kHealthy, kAbnormal, kIgnored };
/// What the label says about each step, in order. Steps of ranks that stand under the fault together are all abnormal.
/// Steps that the profiler touched are ignored; so are steps that some rank never finished and all behind them: what
/// the survivors record of them is their cleaning up, and many methods get no such step; and so are all steps of a
/// fault whose label does not tell the steps.
std::vector<StepTruth> JudgeSteps(const Truth& truth, const std::vector<ReadStep>& steps);

/// How far the fault shows in the times of the steps that it touches: the median of their time (gap included) over that
/// of healthy steps of the same kind and rank, in words that group cases; "not told" without either.
std::string EffectOf(const std::vector<ReadStep>& steps, const std::vector<StepTruth>& verdicts);

}  // namespace teller::score
