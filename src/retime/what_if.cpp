#include "retime/what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "retime/calls.hpp"
#include "retime/typical.hpp"

namespace teller::retime {

namespace {

using trace::Nanos;
using trace::Step;

base::Error NotFound(std::string message) {
  return {base::Code::kNotFound, std::move(message)};
}

class Asker {
 public:
  Asker(const trace::Store& store, const trace::Trees& trees, const Question& question)
      : store_(store), trees_(trees), question_(question), spans_(store.spans), finder_(store, trees) {}

  base::Result<Answer> Ask() {
    std::vector<uint32_t> steps;
    for (uint32_t s = 0; s < trees_.steps.size(); ++s) {
      if (trees_.steps[s].index == question_.step && (!question_.rank || trees_.steps[s].rank == question_.rank))
        steps.push_back(s);
    }
    if (steps.empty()) return NotFound(NoStep());
    auto name = finder_.FindName(steps, question_.op);
    if (!name) return name.error();
    StepCalls chosen;
    for (const uint32_t step : steps) {
      StepCalls calls = finder_.CallsIn(step, *name);
      if (chosen.calls.empty() || calls.total > chosen.total) chosen = std::move(calls);
    }
    Answer answer;
    answer.op = store_.text(*name);
    answer.calls = chosen.calls;
    answer.calls_recorded = chosen.total;
    auto changes = ChangesFor(chosen, *name, answer);
    if (!changes) return changes.error();
    Replays(chosen.step, *changes, answer);
    return answer;
  }

 private:
  std::string NoStep() const {
    std::set<uint32_t> known;
    for (const Step& step : trees_.steps) {
      if (!question_.rank || step.rank == question_.rank) known.insert(step.index);
    }
    const std::string of = question_.rank ? fmt::format(" of rank {}", *question_.rank) : "";
    if (known.empty()) return fmt::format("no step{} is known in this run", of);
    return fmt::format("no step {}{} in this run; there are {} from {} to {}", question_.step, of, known.size(),
                       *known.begin(), *known.rbegin());
  }

  /// What the n-th call takes in other steps of as many calls; all calls where no other step has as many.
  std::vector<Nanos> Normal(const StepCalls& chosen, base::StringId name, Answer& answer) const {
    std::vector<std::vector<Nanos>> by_place(chosen.calls.size());
    std::vector<Nanos> all;
    std::vector<Nanos> totals;
    const trace::StepKind kind = trees_.steps[chosen.step].kind;
    for (uint32_t s = 0; s < trees_.steps.size(); ++s) {
      const bool same = s == chosen.step || trees_.steps[s].observer || trees_.steps[s].kind != kind;
      if (same) continue;
      const StepCalls other = finder_.CallsIn(s, name);
      if (!other.calls.empty()) totals.push_back(other.total);
      for (size_t i = 0; i < other.calls.size(); ++i) {
        const Nanos duration = spans_.duration[other.calls[i].value()];
        all.push_back(duration);
        if (other.calls.size() == chosen.calls.size()) by_place[i].push_back(duration);
      }
    }
    answer.compared = all.size();
    if (all.empty()) return {};
    answer.calls_usual = IsUsual(chosen.total, totals);
    const Nanos usual = Median(all, 0);
    std::vector<Nanos> normal;
    constexpr size_t kFewest = 3;
    for (auto& place : by_place) normal.push_back(place.size() < kFewest ? usual : Median(place, 0));
    return normal;
  }

  /// Within three standard deviations (from the median deviation) of what other steps spend there.
  static bool IsUsual(Nanos total, std::vector<Nanos>& totals) {
    const Nanos middle = Median(totals, 0);
    std::vector<Nanos> away;
    for (const Nanos other : totals) away.push_back(std::abs(other - middle));
    constexpr double kThreeDeviations = 3 * 1.4826;
    return static_cast<double>(std::abs(total - middle)) <= kThreeDeviations * static_cast<double>(Median(away, 0));
  }

  base::Result<Changes> ChangesFor(const StepCalls& chosen, base::StringId name, Answer& answer) const {
    std::vector<Nanos> wanted;
    const Wanted& to = question_.to;
    if (to.kind == Wanted::Kind::kNormal) {
      wanted = Normal(chosen, name, answer);
      if (wanted.empty()) {
        return NotFound(fmt::format(
            "no other step of the run calls \"{}\", so what is normal is not known; give a duration or a factor",
            store_.text(name)));
      }
    }
    Changes changes;
    for (size_t i = 0; i < chosen.calls.size(); ++i) {
      const auto recorded = static_cast<double>(spans_.duration[chosen.calls[i].value()]);
      double factor = to.factor;
      if (to.kind == Wanted::Kind::kDuration) factor = recorded > 0 ? static_cast<double>(to.duration) / recorded : 1;
      if (to.kind == Wanted::Kind::kNormal) factor = recorded > 0 ? static_cast<double>(wanted[i]) / recorded : 1;
      answer.calls_wanted += static_cast<Nanos>(std::nearbyint(recorded * factor));
      finder_.Scale(chosen.calls[i], factor, changes);
    }
    return changes;
  }

  void Replays(uint32_t chosen, const Changes& changes, Answer& answer) const {
    const Graph graph = BuildGraph(store_, trees_);
    const std::vector<StepTime> plain = StepTimes(store_, trees_, graph, Replay(store_, trees_, graph));
    const std::vector<StepTime> changed = StepTimes(store_, trees_, graph, Replay(store_, trees_, graph, changes));
    for (uint32_t s = 0; s < trees_.steps.size(); ++s) {
      const StepChange change{s, plain[s].recorded, plain[s].replayed, changed[s].replayed};
      if (s == chosen) {
        answer.step = change;
      } else if (trees_.steps[s].index == question_.step) {
        answer.others.push_back(change);
      }
    }
    const Nanos recorded = answer.step.recorded;
    if (recorded > 0) {
      const Nanos share = std::max(plain[chosen].host_wait, plain[chosen].gpu_idle);
      answer.recomputed = std::min(1.0, static_cast<double>(share) / static_cast<double>(recorded));
    }
    const Nanos error = std::abs(answer.step.modelled - recorded);
    answer.nothing_changes =
        answer.calls_usual || std::abs(answer.step.difference()) <= std::max(error, recorded / 100);
  }

  const trace::Store& store_;
  const trace::Trees& trees_;
  const Question& question_;
  const trace::Spans& spans_;
  const CallFinder finder_;
};

}  // namespace

base::Result<Answer> WhatIf(const trace::Store& store, const trace::Trees& trees, const Question& question) {
  return Asker(store, trees, question).Ask();
}

}  // namespace teller::retime
