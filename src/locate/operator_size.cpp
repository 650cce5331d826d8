#include "locate/operator_size.hpp"

#include <algorithm>
#include <string_view>

#include "locate/resources.hpp"
#include "tree/dims.hpp"

namespace teller::locate {

namespace {

constexpr double kMore = 1.5;          // times as many elements are more to do
constexpr double kInProportion = 1.5;  // times that, at most, it may take
constexpr Nanos kHidden = 10;          // times as long is more than a longer list of positions costs

/// Of the claim's operator in some steps, a step on average.
struct Calls {
  double elements = 0;  ///< of their first tensors
  double took = 0;      ///< ns
  size_t steps = 0;

  void Add(double more, double time) {
    elements += more;
    took += time;
    ++steps;
  }
  double Elements() const { return elements / static_cast<double>(std::max<size_t>(steps, 1)); }
  double Took() const { return took / static_cast<double>(std::max<size_t>(steps, 1)); }
};

void AddStep(const Scene& scene, const Hypothesis& claim, uint32_t s, Calls& calls) {
  double elements = 0;
  double took = 0;
  for (const Slot& slot : scene.profiles[s].slots) {
    const bool same = claim.whole_operator ? slot.key.kind == claim.slot.kind && slot.key.name == claim.slot.name
                                           : slot.key == claim.slot;
    if (!same || slot.span == kNoSpan) continue;
    took += static_cast<double>(slot.cost);
    const trace::OpArgs* args = scene.store.op_args.Find(slot.span);
    if (args != nullptr && args->input_dims.valid())
      elements += tree::ElementsOfFirstTensor(scene.store.text(args->input_dims));
  }
  if (took > 0) calls.Add(elements, took);
}

bool HasMoreElements(const Scene& scene, const Hypothesis& claim) {
  Calls accused;
  Calls others;
  const auto& steps = scene.trees.steps;
  for (uint32_t s = 0; s < steps.size(); ++s) {
    if (steps[s].process != claim.process) continue;
    const bool hit = std::binary_search(claim.steps.begin(), claim.steps.end(), s);
    if (hit || steps[s].kind == steps[claim.steps.front()].kind) AddStep(scene, claim, s, hit ? accused : others);
  }
  if (accused.steps == 0 || others.steps == 0 || others.elements <= 0) return false;
  const double more = accused.Elements() / others.Elements();
  return more >= kMore && accused.Took() <= kInProportion * more * others.Took();
}

}  // namespace

bool MayTakeMore(const Scene& scene, const Hypothesis& claim) {
  if (claim.span == kNoSpan || claim.steps.empty() || claim.slot.kind != SlotKey::Kind::kOp ||
      UsesDevice(scene, claim.process))
    return false;
  const std::string_view name = scene.store.name(claim.span);
  const bool hides = name == "aten::index" || name == "aten::index_put_" || name == "aten::_index_put_impl_";
  return (hides && claim.worst < kHidden * claim.usual) || HasMoreElements(scene, claim);
}

}  // namespace teller::locate
