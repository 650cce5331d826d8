#include "locate/operator_size.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "locate/resources.hpp"
#include "ml/robust.hpp"
#include "tree/dims.hpp"

namespace teller::locate {

namespace {

constexpr double kMore = 1.5;          // times as many elements are more to do
constexpr double kInProportion = 1.5;  // times that, at most, it may take
constexpr Nanos kHidden = 10;          // times as long is more than a longer list of positions costs

/// Of the claim's operator, step by step.
struct Calls {
  std::vector<double> elements;  ///< of their first tensors
  std::vector<double> took;      ///< ns
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
  if (took <= 0) return;
  calls.elements.push_back(elements);
  calls.took.push_back(took);
}

bool HasMoreElements(const Scene& scene, const Hypothesis& claim) {
  const auto& steps = scene.trees.steps;
  const uint32_t front = claim.steps.front();
  // Where tokens are told, only steps with as many were compared.
  if (steps[front].new_tokens >= 0 && scene.normals[front].same_shape) return false;
  Calls accused;
  Calls others;
  const auto [begin, end] =
      std::equal_range(steps.begin(), steps.end(), steps[front],
                       [](const trace::Step& a, const trace::Step& b) { return a.process < b.process; });
  for (auto step = begin; step != end; ++step) {
    if (step->kind != steps[front].kind) continue;
    const auto s = static_cast<uint32_t>(step - steps.begin());
    AddStep(scene, claim, s, std::binary_search(claim.steps.begin(), claim.steps.end(), s) ? accused : others);
  }
  const double usual = ml::Quantile(others.elements, 0.5);
  if (accused.took.empty() || usual <= 0) return false;
  const double more = ml::Quantile(accused.elements, 0.5) / usual;
  return more >= kMore && ml::Quantile(accused.took, 0.5) <= kInProportion * more * ml::Quantile(others.took, 0.5);
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
