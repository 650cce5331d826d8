#include "locate/job_steps.hpp"

#include <algorithm>

namespace teller::locate {

double Share(Nanos part, Nanos whole) {
  if (whole <= 0) return 1;
  return std::clamp(static_cast<double>(part) / static_cast<double>(whole), 0.0, 1.0);
}

bool Empty(const retime::Changes& changes) {
  return changes.spans.empty() && changes.times.empty() && changes.transfers.empty();
}

void ScaleStanding(const trace::Store& store, trace::TrackRow track, Nanos begin, Nanos end, double factor,
                   retime::Changes& changes) {
  const Nanos most = begin + (end - begin) / 10 * 9;
  for (uint32_t t = 0; t < store.tracks.size(); ++t) {
    const trace::Track& other = store.tracks[t];
    if (t != track.value()) {
      if (other.is_stream || other.process != store.tracks[track.value()].process) continue;
      const auto first = store.spans.begin.begin() + other.first_span;
      const auto next = std::upper_bound(first, first + other.span_count, begin);
      if (next != first + other.span_count && *next < most) continue;
    }
    changes.times.push_back({trace::TrackRow(t), begin, end, factor});
  }
}

JobSteps::JobSteps(const Scene& scene) : scene_(scene), graph_(retime::BuildGraph(scene.store, scene.trees)) {
  for (uint32_t s = 0; s < scene.trees.steps.size(); ++s) {
    const trace::Step& step = scene.trees.steps[s];
    if (step.rank) ranked_[step.index].push_back(s);
  }
  recorded_ = After({});
}

JobSteps::Steps JobSteps::After(const retime::Changes& changes) const {
  return retime::StepTimes(scene_.store, scene_.trees, graph_,
                           retime::Replay(scene_.store, scene_.trees, graph_, changes));
}

Nanos JobSteps::Saved(uint32_t s, const Steps& after) const {
  const Nanos here = End(s, after) - End(s, recorded_);
  const Nanos earlier = Follows(s) ? End(s - 1, after) - End(s - 1, recorded_) : 0;
  return earlier - here;
}

std::vector<double> JobSteps::Calm(trace::ProcessRow process, const std::vector<uint32_t>& accused) const {
  std::vector<double> calm;
  for (uint32_t s = 0; s < scene_.trees.steps.size(); ++s) {
    const bool comparable = scene_.trees.steps[s].process == process && Follows(s) && scene_.normals[s].judged &&
                            Expected(s) > 0 && !std::binary_search(accused.begin(), accused.end(), s);
    if (comparable) calm.push_back(static_cast<double>(Took(s)) / Expected(s));
  }
  std::sort(calm.begin(), calm.end());
  return calm;
}

std::optional<Nanos> JobSteps::Excess(uint32_t s, const std::vector<double>& calm) const {
  constexpr size_t kFewest = 3;
  if (calm.size() < kFewest || !Follows(s) || Expected(s) <= 0) return {};
  const auto took = static_cast<double>(Took(s));
  if (took <= calm[calm.size() * 9 / 10] * Expected(s)) return 0;
  return static_cast<Nanos>(took - calm[calm.size() / 2] * Expected(s));
}

/// Of the last rank; of a process without a rank, its own.
Nanos JobSteps::End(uint32_t s, const Steps& times) const {
  const trace::Step& step = scene_.trees.steps[s];
  if (!step.rank) return times[s].replayed_end;
  Nanos end = trace::kNoTime;
  for (const uint32_t member : ranked_.at(step.index)) end = std::max(end, times[member].replayed_end);
  return end;
}

bool JobSteps::Follows(uint32_t s) const {
  return s > 0 && scene_.trees.steps[s - 1].process == scene_.trees.steps[s].process;
}

double JobSteps::Expected(uint32_t s) const {
  const StepNormal& normal = scene_.normals[s];
  return static_cast<double>(normal.expected_own + normal.expected_gap + normal.expected_transfer +
                             normal.expected_wait);
}

/// From the end of the step before it to its own, without the time in which there was nothing to do.
Nanos JobSteps::Took(uint32_t s) const {
  const auto& steps = scene_.trees.steps;
  const Nanos idle = std::max<Nanos>(0, steps[s].begin - steps[s - 1].end - scene_.profiles[s].gap);
  return std::max<Nanos>(0, End(s, recorded_) - End(s - 1, recorded_) - idle);
}

}  // namespace teller::locate
