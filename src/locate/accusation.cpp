#include "locate/accusation.hpp"

#include <algorithm>
#include <map>

#include "locate/job_steps.hpp"
#include "locate/measured.hpp"

namespace teller::locate {

namespace {

using retime::Changes;

constexpr double kLeast = 0.002;  // of a step: places between operators that lost less are left as they are

/// Puts what is accused at its normal time.
class Amends {
 public:
  Amends(const Scene& scene, const Accusation& accusation) : scene_(scene), accusation_(accusation) {}

  /// The accused steps that have a normal.
  std::vector<uint32_t> Steps() const {
    std::vector<uint32_t> steps;
    for (const uint32_t s : accusation_.steps) {
      const bool mine =
          s < scene_.trees.steps.size() && (!accusation_.rank || scene_.trees.steps[s].rank == accusation_.rank);
      if (mine && scene_.normals[s].expected.size() == scene_.profiles[s].slots.size()) steps.push_back(s);
    }
    return steps;
  }

  Changes Make() {
    for (const uint32_t s : Steps()) {
      if (accusation_.op.empty()) {
        AmendAll(s);
      } else {
        AmendOperator(s);
      }
    }
    return std::move(changes_);
  }

 private:
  void AmendOperator(uint32_t s) {
    const auto& slots = scene_.profiles[s].slots;
    for (size_t k = 0; k < slots.size(); ++k) {
      const Slot& slot = slots[k];
      const bool called = slot.key.kind == SlotKey::Kind::kOp || slot.key.kind == SlotKey::Kind::kGpu;
      if (!called || slot.span == kNoSpan || scene_.store.name(slot.span) != accusation_.op) continue;
      changes_.spans.push_back({trace::SpanRow(slot.span), Share(scene_.normals[s].expected_total[k], slot.total)});
    }
  }

  /// Each operator, each kernel and each place between operators by itself: others wait for single ones of them.
  void AmendAll(uint32_t s) {
    const trace::Step& step = scene_.trees.steps[s];
    const StepProfile& profile = scene_.profiles[s];
    const StepNormal& normal = scene_.normals[s];
    AmendThreads(step, step.begin - profile.gap, step.begin, Share(normal.expected_gap, profile.gap));
    for (size_t k = 0; k < profile.slots.size(); ++k) {
      const Slot& slot = profile.slots[k];
      if (slot.key.kind == SlotKey::Kind::kHost) {
        const Nanos more = std::max<Nanos>(0, slot.cost - normal.expected[k]);
        if (static_cast<double>(more) < kLeast * static_cast<double>(step.duration())) continue;
        AmendThreads(step, slot.begin, slot.begin + slot.largest, Share(slot.largest - more, slot.largest));
      } else if (slot.key.kind != SlotKey::Kind::kGap && slot.span != kNoSpan) {
        changes_.spans.push_back({trace::SpanRow(slot.span), Share(normal.expected_total[k], slot.total)});
      }
    }
  }

  void AmendThreads(const trace::Step& step, Nanos begin, Nanos end, double factor) {
    if (factor >= 1 || !step.span.valid()) return;
    ScaleStanding(scene_.store, scene_.store.spans.track[step.span.value()], begin, end, factor, changes_);
  }

  const Scene& scene_;
  const Accusation& accusation_;
  Changes changes_;
};

std::optional<double> Restored(const Scene& scene, const JobSteps& job, const Accusation& accusation) {
  Amends amends(scene, accusation);
  const std::vector<uint32_t> steps = amends.Steps();
  std::vector<uint32_t> accused = accusation.steps;
  std::sort(accused.begin(), accused.end());
  const Changes changes = amends.Make();
  if (steps.empty() || Empty(changes)) return {};
  std::map<trace::ProcessRow, std::vector<double>> calm;
  std::vector<std::pair<uint32_t, Nanos>> longer;
  Nanos excess = 0;
  bool told = false;
  for (const uint32_t s : steps) {
    const trace::ProcessRow process = scene.trees.steps[s].process;
    if (!calm.contains(process)) calm[process] = job.Calm(process, accused);
    const auto more = job.Excess(s, calm[process]);
    told |= more.has_value();
    if (more.value_or(0) <= 0) continue;
    longer.emplace_back(s, *more);
    excess += *more;
  }
  if (!told) return {};
  if (excess <= 0) return 0;
  const JobSteps::Steps after = job.After(changes);
  Nanos saved = 0;  // in each step at most what it is too long: jitter of the others pays for nothing
  for (const auto& [s, more] : longer) saved += std::clamp<Nanos>(job.Saved(s, after), 0, more);
  return static_cast<double>(saved) / static_cast<double>(excess);
}

}  // namespace

std::vector<std::optional<double>> RestoredShares(const trace::Store& store, const trace::Trees& trees,
                                                  const std::vector<Accusation>& accusations) {
  if (std::all_of(accusations.begin(), accusations.end(), [](const Accusation& a) { return a.steps.empty(); }))
    return std::vector<std::optional<double>>(accusations.size());
  const Measured measured(store, trees);
  const JobSteps job(measured.scene);
  std::vector<std::optional<double>> out;
  for (const Accusation& accusation : accusations) out.push_back(Restored(measured.scene, job, accusation));
  return out;
}

}  // namespace teller::locate
