#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "locate/hypothesis.hpp"
#include "retime/step_times.hpp"

namespace teller::locate {

/// What a repair leaves of a time, 0..1; 1 where there is nothing to repair.
double Share(Nanos part, Nanos whole);

/// True when nothing would be repaired.
bool Empty(const retime::Changes& changes);

/// Changes what a thread does by itself between two times, and with it the threads of its process that stood still
/// meanwhile: began nothing in the first nine tenths. A process that is stopped is so with all of its threads; what
/// others computed meanwhile is not what is repaired.
void ScaleStanding(const trace::Store& store, trace::TrackRow track, Nanos begin, Nanos end, double factor,
                   retime::Changes& changes);

/// The steps of the job, re-timed. A step of the job is over when the last of the ranks that take it has done it, so
/// repairing a rank that another one would have been waited for anyway saves nothing.
class JobSteps {
 public:
  using Steps = std::vector<retime::StepTime>;  ///< parallel to Trees::steps

  explicit JobSteps(const Scene& scene);

  Steps After(const retime::Changes& changes) const;

  /// By how much step `s` of the trees, with the gap before it, is shorter than recorded.
  Nanos Saved(uint32_t s, const Steps& after) const;

  /// What the steps of a process outside of `accused` (in order) take, as a multiple of what is expected of each; in
  /// order of size.
  std::vector<double> Calm(trace::ProcessRow process, const std::vector<uint32_t>& accused) const;

  /// By how much step `s`, with the gap before it, is longer than normal for its shape: than the median of `calm`. 0
  /// unless it is longer than nine of ten of those; none where fewer than three can be compared.
  std::optional<Nanos> Excess(uint32_t s, const std::vector<double>& calm) const;

 private:
  Nanos End(uint32_t s, const Steps& times) const;
  bool Follows(uint32_t s) const;
  double Expected(uint32_t s) const;
  Nanos Took(uint32_t s) const;

  const Scene& scene_;
  retime::Graph graph_;
  Steps recorded_;
  std::map<uint32_t, std::vector<uint32_t>> ranked_;  ///< by index: of all ranks
};

}  // namespace teller::locate
