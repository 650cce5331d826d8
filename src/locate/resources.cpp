#include "locate/resources.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace teller::locate {

namespace {

/// Measured and normal time of a step's slots that pass. A step that nobody judges has no normal.
template <class Counts>
Cost SumOf(const Scene& scene, uint32_t step, Counts counts) {
  const auto& slots = scene.profiles[step].slots;
  const auto& expected = scene.normals[step].expected;
  Cost sum;
  for (size_t k = 0; k < slots.size(); ++k) {
    if (!counts(slots[k])) continue;
    sum.took += static_cast<double>(slots[k].cost);
    if (k < expected.size()) sum.expected += static_cast<double>(expected[k]);
  }
  return sum;
}

}  // namespace

bool WaitsForOthers(const Scene& scene, const Slot& slot) {
  const std::string_view name = scene.store.text(trace::StringId(slot.key.name));
  const bool copies = slot.span != kNoSpan && trace::IsApiCall(scene.store.kind(slot.span)) &&
                      name.find("emcpy") != std::string_view::npos;
  return slot.waits || copies || IsWaitingCall(name);
}

Cost HostCost(const Scene& scene, uint32_t step) {
  return SumOf(scene, step, [&](const Slot& slot) {
    const bool host = slot.key.kind == SlotKey::Kind::kOp || slot.key.kind == SlotKey::Kind::kHost;
    return host && !WaitsForOthers(scene, slot);
  });
}

Cost DeviceCost(const Scene& scene, uint32_t step) {
  return SumOf(scene, step, [](const Slot& slot) { return slot.key.kind == SlotKey::Kind::kGpu; });
}

bool UsesDevice(const Scene& scene, trace::ProcessRow process) {
  const auto& steps = scene.trees.steps;
  auto step = std::lower_bound(steps.begin(), steps.end(), process,
                               [](const trace::Step& s, trace::ProcessRow row) { return s.process < row; });
  for (; step != steps.end() && step->process == process; ++step) {
    if (scene.profiles[static_cast<size_t>(step - steps.begin())].uses_device) return true;
  }
  return false;
}

bool MayShareItsCore(const Scene& scene, const Hypothesis& claim, double by) {
  constexpr Nanos kPassing = 30 * base::kSecond;
  return by < std::log(kSharedCore) && claim.end - claim.onset < kPassing && !UsesDevice(scene, claim.process);
}

}  // namespace teller::locate
