#include "locate/operator_costs.hpp"

#include <algorithm>

#include "ml/robust.hpp"

namespace teller::locate {

namespace {

// So many times the usual number of calls is another program, not another size.
constexpr double kManyCalls = 3.0;
constexpr size_t kFewestSteps = 6;  // that know how often an operator is called
constexpr double kNotTold = 1e18;   // calls

}  // namespace

OperatorCosts OperatorTable::Of(uint32_t s, SlotKey::Kind kind) const {
  OperatorCosts names;
  const StepProfile& p = scene_.profiles[s];
  const StepNormal& normal = scene_.normals[s];
  for (size_t k = 0; k < p.slots.size(); ++k) {
    const Slot& slot = p.slots[k];
    if (slot.key.kind != kind || IsWaitingCall(scene_.store.name(slot.span))) continue;
    OperatorCost& c = names[slot.key.name];
    c.cost += static_cast<double>(slot.total);
    c.expected += static_cast<double>(normal.expected_total[k]);
    c.calls += 1;
    const auto excess = static_cast<double>(slot.total - normal.expected_total[k]);
    if (excess > c.top) {
      c.top = excess;
      c.top_slot = k;
    }
  }
  for (auto& [name, c] : names) {
    // Calls beyond what steps of about this size make are excess, also where all steps of one shape make them.
    const double usual = kind == SlotKey::Kind::kOp ? UsualCalls(s, name) : c.calls;
    if (c.calls > kManyCalls * std::max(usual, 1.0))
      c.expected = std::min(c.expected, c.cost * std::max(usual, 1.0) / c.calls);
  }
  return names;
}

/// Low end of how often steps of the same kind and of half to twice the size call an operator.
double OperatorTable::UsualCalls(uint32_t s, uint32_t name) const {
  const trace::Step& step = scene_.trees.steps[s];
  if (step.new_tokens <= 0) return kNotTold;
  const auto [it, fresh] = usual_calls_.try_emplace({static_cast<int>(step.kind), step.new_tokens, name}, 0.0);
  if (!fresh) return it->second;
  std::vector<double> calls;
  for (const uint32_t other : steps_) {
    const trace::Step& theirs = scene_.trees.steps[other];
    if (scene_.profiles[other].opaque || theirs.kind != step.kind || theirs.new_tokens < step.new_tokens / 2 ||
        theirs.new_tokens / 2 > step.new_tokens)
      continue;
    calls.push_back(static_cast<double>(Calls(other, name)));
  }
  it->second = calls.size() < kFewestSteps ? kNotTold : ml::Quantile(calls, 0.15);
  return it->second;
}

size_t OperatorTable::Calls(uint32_t s, uint32_t name) const {
  const auto& slots = scene_.profiles[s].slots;
  const auto by_name = [](const Slot& slot, uint32_t n) { return slot.key.name < n; };
  size_t calls = 0;
  for (auto it = std::lower_bound(slots.begin(), slots.end(), name, by_name); it != slots.end() && it->key.name == name;
       ++it) {
    calls += it->key.kind == SlotKey::Kind::kOp;
  }
  return calls;
}

}  // namespace teller::locate
