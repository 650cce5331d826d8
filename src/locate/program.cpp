#include "locate/program.hpp"

#include <utility>

namespace teller::locate {

namespace {

constexpr double kShareOfTime = 0.1;  // of all operators' time, that another program spends in what this one never does
constexpr double kShareOfNames = 0.25;  // of what it does often

/// What a process does in an operator.
struct Part {
  size_t steps = 0;  ///< in which it calls it
  Nanos time = 0;
};
using Parts = std::map<uint32_t, Part>;  // by name

/// What a process does often, and what it spends there.
struct Often {
  std::map<uint32_t, Nanos> time;
  Nanos all = 0;
};

/// True when little of what one does often is unknown to the other.
bool Fits(const Often& often, const std::set<uint32_t>& ever) {
  Nanos time = 0;
  size_t names = 0;
  for (const auto& [name, spent] : often.time) {
    if (ever.contains(name)) continue;
    time += spent;
    ++names;
  }
  if (names == 0) return true;
  return static_cast<double>(time) <= kShareOfTime * static_cast<double>(often.all) &&
         static_cast<double>(names) < kShareOfNames * static_cast<double>(often.time.size());
}

}  // namespace

Programs::Programs(const trace::Trees& trees, const std::vector<StepProfile>& profiles) {
  std::map<uint32_t, Parts> parts_of;  // by process
  std::map<uint32_t, size_t> steps_of;
  for (uint32_t s = 0; s < profiles.size(); ++s) {
    if (profiles[s].opaque || trees.steps[s].observer) continue;
    const uint32_t process = trees.steps[s].process.value();
    ++steps_of[process];
    auto& parts = parts_of[process];
    std::set<uint32_t> here;
    for (const Slot& slot : profiles[s].slots) {
      // A kernel may be chosen for a size: what is called tells.
      if (slot.key.kind != SlotKey::Kind::kOp) continue;
      Part& part = parts[slot.key.name];
      part.steps += here.insert(slot.key.name).second;
      part.time += slot.cost;
    }
  }
  std::map<Names, size_t> programs;  // by what is done often
  std::vector<Often> often;
  std::vector<Names> ever;
  for (const auto& [process, parts] : parts_of) {
    if (parts.empty()) continue;
    Names usual;
    for (const auto& [name, part] : parts) {
      if (2 * part.steps >= steps_of[process]) usual.insert(name);
    }
    const auto [it, fresh] = programs.try_emplace(std::move(usual), programs.size());
    if (fresh) often.emplace_back();
    if (fresh) ever.emplace_back();
    Often& sum = often[it->second];
    for (const auto& [name, part] : parts) {
      ever[it->second].insert(name);
      sum.all += part.time;
      if (it->first.contains(name)) sum.time[name] += part.time;
    }
    of_process_[process] = it->second;
  }
  same_.assign(often.size(), std::vector<bool>(often.size(), true));
  for (size_t a = 0; a < often.size(); ++a) {
    for (size_t b = 0; b < a; ++b) same_[a][b] = same_[b][a] = Fits(often[a], ever[b]) && Fits(often[b], ever[a]);
  }
}

bool Programs::Same(trace::ProcessRow a, trace::ProcessRow b) const {
  const auto one = of_process_.find(a.value());
  const auto other = of_process_.find(b.value());
  return one == of_process_.end() || other == of_process_.end() || same_[one->second][other->second];
}

}  // namespace teller::locate
