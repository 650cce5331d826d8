#include "locate/pause_kind.hpp"

#include <algorithm>

#include "locate/late_start.hpp"

namespace teller::locate {

bool OthersHadBegun(const Scene& scene, const Hypothesis& pause) {
  const auto worst = std::max_element(pause.lost_in.begin(), pause.lost_in.end());
  if (worst == pause.lost_in.end()) return false;
  const uint32_t step = pause.steps[static_cast<size_t>(worst - pause.lost_in.begin())];
  return 2 * LateStarts(scene.trees)[step] >= pause.worst;
}

bool IsTakingRequestsIn(const Scene& scene, const Hypothesis& pause) {
  for (const uint32_t s : pause.steps) {
    if (!scene.profiles[s].late_start) return false;
  }
  return IsHardlyEverIdle(scene.trees, scene.profiles, pause.process);
}

bool IsThrottled(const Scene& scene, const Hypothesis& pause, const std::string& process) {
  constexpr Nanos kPeriod = 100 * base::kMilli;
  constexpr double kLittle = 0.05;  // processors
  constexpr double kMuch = 0.6;
  constexpr size_t kFewest = 3;
  constexpr Nanos kAlike = 2;  // times
  if (scene.witness == nullptr || pause.in_gap || pause.steps.size() < kFewest || pause.worst > kPeriod) return false;
  const auto [least, most] = std::minmax_element(pause.lost_in.begin(), pause.lost_in.end());
  const bool near = pause.steps.back() - pause.steps.front() < 2 * pause.steps.size();
  const double used = scene.witness->Used(process, pause.onset, pause.end);
  return near && *most <= kAlike * *least && used >= kLittle && used <= kMuch;
}

}  // namespace teller::locate
