#include "locate/pause_kind.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>

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

namespace {

constexpr Nanos kPeriod = 100 * base::kMilli;  // of the scheduler's quota

/// True when what is longest in these steps ends at the same place of the period: who has used a quota up goes on with
/// the next period, whatever it does; who waits for an answer goes on when it comes.
bool EndWithPeriods(const Scene& scene, const Hypothesis& pause) {
  constexpr Nanos kNear = 5 * base::kMilli;
  std::optional<Nanos> first;
  for (const uint32_t s : pause.steps) {
    const auto& slots = scene.profiles[s].slots;
    const auto& expected = scene.normals[s].expected;
    const Slot* longest = nullptr;
    Nanos most = 0;
    for (size_t k = 0; k < slots.size(); ++k) {
      const Nanos excess = slots[k].largest - (expected.size() == slots.size() ? expected[k] : 0);
      if (slots[k].key.kind == SlotKey::Kind::kGpu || excess <= most) continue;
      longest = &slots[k];
      most = excess;
    }
    if (longest == nullptr) return false;
    const Nanos end = longest->begin + longest->largest;
    if (!first) first = end;
    const Nanos off = std::abs(end - *first) % kPeriod;
    if (std::min(off, kPeriod - off) > kNear) return false;
  }
  return first.has_value();
}

}  // namespace

bool UsedAPart(const Scene& scene, const Hypothesis& pause, const std::string& process) {
  constexpr double kLittle = 0.05;  // processors
  constexpr double kMuch = 0.6;
  if (scene.witness == nullptr) return false;
  const double used = scene.witness->Used(process, pause.onset, pause.end);
  return used >= kLittle && used <= kMuch;
}

bool IsThrottled(const Scene& scene, const Hypothesis& pause, const std::string& process) {
  constexpr size_t kFewest = 3;
  constexpr Nanos kAlike = 2;  // times
  if (pause.in_gap || pause.steps.size() < kFewest || pause.worst > kPeriod) return false;
  const auto [least, most] = std::minmax_element(pause.lost_in.begin(), pause.lost_in.end());
  const bool near = pause.steps.back() - pause.steps.front() < 2 * pause.steps.size();
  return near && *most <= kAlike * *least && UsedAPart(scene, pause, process) && EndWithPeriods(scene, pause);
}

}  // namespace teller::locate
