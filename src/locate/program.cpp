#include "locate/program.hpp"

#include <algorithm>

namespace teller::locate {

Programs::Programs(const trace::Trees& trees, const std::vector<StepProfile>& profiles) {
  std::map<uint32_t, std::map<uint32_t, size_t>> steps_with;  // process -> name -> its steps that have it
  std::map<uint32_t, size_t> steps_of;
  for (uint32_t s = 0; s < profiles.size(); ++s) {
    if (profiles[s].opaque || trees.steps[s].observer) continue;
    const uint32_t process = trees.steps[s].process.value();
    ++steps_of[process];
    auto& names = steps_with[process];
    // Slots are in the order of names.
    uint32_t last = 0;
    for (const Slot& slot : profiles[s].slots) {
      const bool work = slot.key.kind == SlotKey::Kind::kOp || slot.key.kind == SlotKey::Kind::kGpu;
      if (!work || slot.key.name == last) continue;
      last = slot.key.name;
      ++names[last];
    }
  }
  std::map<Names, size_t> programs;  // by what is done often
  std::vector<const Names*> often;
  std::vector<Names> ever;
  for (const auto& [process, names] : steps_with) {
    if (names.empty()) continue;
    Names usual;
    for (const auto& [name, count] : names) {
      if (2 * count >= steps_of[process]) usual.insert(name);
    }
    const auto [it, fresh] = programs.try_emplace(std::move(usual), programs.size());
    if (fresh) often.push_back(&it->first);
    if (fresh) ever.emplace_back();
    for (const auto& [name, count] : names) ever[it->second].insert(name);
    of_process_[process] = it->second;
  }
  const auto fits = [&](size_t a, size_t b) {
    return std::includes(ever[b].begin(), ever[b].end(), often[a]->begin(), often[a]->end());
  };
  same_.assign(often.size(), std::vector<bool>(often.size(), true));
  for (size_t a = 0; a < often.size(); ++a) {
    for (size_t b = 0; b < a; ++b) same_[a][b] = same_[b][a] = fits(a, b) && fits(b, a);
  }
}

bool Programs::Same(trace::ProcessRow a, trace::ProcessRow b) const {
  const auto one = of_process_.find(a.value());
  const auto other = of_process_.find(b.value());
  return one == of_process_.end() || other == of_process_.end() || same_[one->second][other->second];
}

}  // namespace teller::locate
