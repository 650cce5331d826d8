#include "locate/device_calls.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "ml/robust.hpp"

namespace teller::locate {

namespace {

/// API calls of one step's thread.
struct Calls {
  double graphs = 0;
  double kernels = 0;
  double waits = 0;  ///< synchronizations
};

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Calls CallsIn(const Scene& scene, uint32_t step) {
  Calls calls;
  for (const Slot& slot : scene.profiles[step].slots) {
    if (slot.key.kind != SlotKey::Kind::kOp || slot.span == kNoSpan) continue;
    if (!trace::IsApiCall(scene.store.kind(slot.span))) continue;
    const std::string_view name = scene.store.name(slot.span);
    calls.graphs += Has(name, "GraphLaunch") ? 1 : 0;
    calls.kernels += Has(name, "LaunchKernel") ? 1 : 0;
    calls.waits += Has(name, "Synchronize") ? 1 : 0;
  }
  return calls;
}

/// Medians over some steps.
Calls Typical(const Scene& scene, const std::vector<uint32_t>& steps) {
  std::vector<double> graphs;
  std::vector<double> kernels;
  std::vector<double> waits;
  for (const uint32_t s : steps) {
    const Calls calls = CallsIn(scene, s);
    graphs.push_back(calls.graphs);
    kernels.push_back(calls.kernels);
    waits.push_back(calls.waits);
  }
  return {ml::Quantile(graphs, 0.5), ml::Quantile(kernels, 0.5), ml::Quantile(waits, 0.5)};
}

}  // namespace

HostCause ReadHostCause(const Scene& scene, const Hypothesis& claim) {
  const bool launches = std::any_of(scene.trees.launches.begin(), scene.trees.launches.end(), [&](const auto& link) {
    return scene.store.track_of(link.launch.value()).process == claim.process;
  });
  if (!launches || claim.steps.empty()) return HostCause::kComputes;
  const trace::StepKind kind = scene.trees.steps[claim.steps[claim.steps.size() / 2]].kind;
  std::vector<uint32_t> same;  // steps of the claim and others, of one kind
  std::vector<uint32_t> others;
  for (uint32_t s = 0; s < scene.trees.steps.size(); ++s) {
    if (scene.trees.steps[s].process != claim.process || scene.trees.steps[s].kind != kind) continue;
    (std::find(claim.steps.begin(), claim.steps.end(), s) != claim.steps.end() ? same : others).push_back(s);
  }
  if (same.empty() || others.empty()) return HostCause::kHost;
  const Calls now = Typical(scene, same);
  const Calls usual = Typical(scene, others);
  if (usual.graphs >= 1 && now.graphs == 0 && now.kernels > 2 * usual.kernels) return HostCause::kGraphFallback;
  // A step waits for its result once or twice; waits beyond that were put there.
  if (now.waits >= 2 * usual.waits + 2) return HostCause::kHiddenSync;
  return HostCause::kHost;
}

}  // namespace teller::locate
