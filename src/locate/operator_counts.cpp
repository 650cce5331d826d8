#include "locate/operator_counts.hpp"

#include "locate/deviation.hpp"

namespace teller::locate {

std::map<uint32_t, Calls> CallsIn(const Scene& scene, uint32_t step) {
  std::map<uint32_t, Calls> names;
  const auto& slots = scene.profiles[step].slots;
  for (uint32_t k = 0; k < slots.size(); ++k) {
    if (slots[k].key.kind != SlotKey::Kind::kOp || IsWaitingCall(scene.store.name(slots[k].span))) continue;
    Calls& calls = names[slots[k].key.name];
    ++calls.count;
    calls.total += slots[k].total;
    calls.slots.push_back(k);
  }
  return names;
}

void AddRepeated(const Scene& scene, uint32_t step, const Calls& calls, double times, Hypothesis& h) {
  const trace::Step& where = scene.trees.steps[step];
  const double usual = static_cast<double>(calls.total) / times;
  AddLoss(h, step, static_cast<double>(calls.total) - usual, where.begin, where.end);
  // Most calls are extra ones: so is the one in the middle.
  const Slot& slot = scene.profiles[step].slots[calls.slots[calls.slots.size() / 2]];
  NoteWorst(h, {.length = calls.total,
                .begin = slot.begin,
                .span = slot.span,
                .usual = static_cast<Nanos>(usual),
                .slot = slot.key});
}

}  // namespace teller::locate
