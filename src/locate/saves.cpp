#include "locate/saves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "locate/deviation.hpp"
#include "locate/naming.hpp"

namespace teller::locate {

namespace {

constexpr double kSlower = 2.5;        // times the longest other save; files and disks differ that much every day
constexpr double kAboutAsMuch = 1.25;  // times the bytes
constexpr Nanos kFelt = 20 * base::kMilli;

/// Kineto and nsys say DtoH, ROCm DeviceToHost.
bool IsToHost(std::string_view name) {
  return name.find("DtoH") != std::string_view::npos || name.find("DeviceToHost") != std::string_view::npos;
}

struct Save {
  uint32_t step = 0;  ///< the one after it
  double took = 0;    ///< ns
  double bytes = 0;
};

std::map<uint32_t, std::vector<Save>> SavesOf(const Scene& scene) {
  std::map<uint32_t, std::vector<Save>> saves;
  for (const StepProfile& profile : scene.profiles) {
    if (profile.saved_bytes <= 0) continue;
    const trace::Step& step = scene.trees.steps[profile.step];
    saves[step.process.value()].push_back(
        {profile.step, static_cast<double>(step.gap_before), static_cast<double>(profile.saved_bytes)});
  }
  return saves;
}

/// For each save the longest other one of about as many bytes; 0 where there is none.
std::vector<double> LongestOthers(const std::vector<Save>& saves) {
  std::vector<size_t> order(saves.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return saves[a].bytes < saves[b].bytes; });
  std::vector<double> longest(saves.size(), 0);
  std::multiset<double> alike;  // times of those from `first` to before `next` in that order
  size_t first = 0;
  size_t next = 0;
  for (const size_t i : order) {
    while (next < order.size() && saves[order[next]].bytes <= kAboutAsMuch * saves[i].bytes)
      alike.insert(saves[order[next++]].took);
    while (kAboutAsMuch * saves[order[first]].bytes < saves[i].bytes)
      alike.erase(alike.find(saves[order[first++]].took));
    auto most = alike.rbegin();
    if (*most == saves[i].took) ++most;  // that is itself, or another one that took as long comes next
    if (most != alike.rend()) longest[i] = *most;
  }
  return longest;
}

}  // namespace

HostCopies::HostCopies(const trace::Store& store) {
  for (uint32_t row = 0; row < store.spans.size(); ++row) {
    if (store.kind(row) != trace::SpanKind::kCopy || !IsToHost(store.name(row))) continue;
    const trace::GpuArgs* args = store.gpu_args.Find(row);
    if (args == nullptr || args->bytes <= 0) continue;
    by_process_[store.track_of(row).process.value()].push_back({store.spans.begin[row], args->bytes});
  }
  for (auto& [process, copies] : by_process_) {
    std::sort(copies.begin(), copies.end(), [](const Copy& a, const Copy& b) { return a.begin < b.begin; });
  }
}

int64_t HostCopies::Between(uint32_t process, Nanos begin, Nanos end) const {
  constexpr int64_t kMost = int64_t{1} << 50;  // hostile files must not overflow
  const auto found = by_process_.find(process);
  if (found == by_process_.end()) return 0;
  auto it = std::lower_bound(found->second.begin(), found->second.end(), begin,
                             [](const Copy& copy, Nanos t) { return copy.begin < t; });
  int64_t bytes = 0;
  for (; it != found->second.end() && it->begin < end; ++it)
    bytes = std::min(kMost, bytes + std::min(kMost, it->bytes));
  return bytes;
}

std::vector<Hypothesis> SearchSlowSaves(const Scene& scene) {
  std::vector<Hypothesis> out;
  for (const auto& [process, saves] : SavesOf(scene)) {
    const std::vector<double> others = LongestOthers(saves);
    for (size_t i = 0; i < saves.size(); ++i) {
      const double usual = others[i];
      if (usual <= 0 || saves[i].took < kSlower * usual || saves[i].took - usual < static_cast<double>(kFelt)) continue;
      const trace::Step& step = scene.trees.steps[saves[i].step];
      Hypothesis h;
      h.trouble = Trouble::kSlowSave;
      h.process = step.process;
      h.rank = step.rank;
      h.in_gap = true;
      AddLoss(h, saves[i].step, saves[i].took - usual, step.begin - step.gap_before, step.begin);
      h.worst = step.gap_before;
      h.worst_begin = step.begin - step.gap_before;
      h.usual = static_cast<Nanos>(usual);
      // The tail of what disks take is heavy.
      h.false_alarm = std::clamp(std::pow(saves[i].took / usual, -3.0), 1e-9, 1.0);
      out.push_back(std::move(h));
    }
  }
  return out;
}

void NoteSaves(const Scene& scene, const std::vector<Hypothesis>& claims, std::vector<trace::Note>& notes) {
  for (const auto& [process, saves] : SavesOf(scene)) {
    std::vector<Save> usual;
    for (const Save& save : saves) {
      const bool accused = std::any_of(claims.begin(), claims.end(), [&](const Hypothesis& h) {
        return h.trouble == Trouble::kSlowSave && h.process.value() == process && h.steps.front() == save.step;
      });
      if (!accused) usual.push_back(save);
    }
    if (usual.empty()) continue;
    const trace::Step& first = scene.trees.steps[usual.front().step];
    const trace::Step& last = scene.trees.steps[usual.back().step];
    const auto longest =
        std::max_element(usual.begin(), usual.end(), [](const Save& a, const Save& b) { return a.took < b.took; });
    notes.push_back({fmt::format("{} copies {:.0f} MB to the host between two steps {} and takes up to {} for it, as a "
                                 "program does that saves its state",
                                 ProcessName(scene.store, first.process), longest->bytes / 1e6,
                                 usual.size() == 1 ? "once" : fmt::format("{} times", usual.size()),
                                 Ms(static_cast<Nanos>(longest->took))),
                     first.begin - first.gap_before, last.begin});
  }
}

}  // namespace teller::locate
