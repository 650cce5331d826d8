#include "locate/operator_calls.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "locate/operator_counts.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

namespace {

constexpr double kMany = 3.0;         // times the calls of whoever of the others makes most
constexpr double kFewestExtra = 10;   // calls
constexpr double kFelt = 0.1;         // of the step: less is nobody's trouble
constexpr double kSameProgram = 0.6;  // of the step's operators are called equally often by all ranks
constexpr size_t kFewestSteps = 3;    // with the extra calls
constexpr size_t kFewestCalm = 8;     // and without
constexpr double kCalm = 0.9;         // of the other steps: the operator is called equally often by all ranks
constexpr double kMostIndependent = 3;

/// How often the ranks of a job call one operator in the same step.
struct OverRanks {
  double most = 0;
  double second = 0;
  double least = 0;
  uint32_t step = 0;  ///< of whoever calls it most, index into Trees::steps
};

/// The step in which a process is at a time.
class StepAt {
 public:
  explicit StepAt(const trace::Trees& trees) : trees_(trees) {
    for (uint32_t s = 0; s < trees.steps.size(); ++s) of_[trees.steps[s].process.value()].push_back(s);
  }

  std::optional<uint32_t> operator()(trace::ProcessRow process, Nanos at) const {
    const auto found = of_.find(process.value());
    if (found == of_.end()) return std::nullopt;
    const auto after = std::upper_bound(found->second.begin(), found->second.end(), at,
                                        [&](Nanos t, uint32_t s) { return t < trees_.steps[s].begin; });
    if (after == found->second.begin() || at > trees_.steps[*(after - 1)].end) return std::nullopt;
    return *(after - 1);
  }

 private:
  const trace::Trees& trees_;
  std::map<uint32_t, std::vector<uint32_t>> of_;  ///< process -> its steps, by begin
};

class Search {
 public:
  explicit Search(const Scene& scene) : scene_(scene) {
    std::map<uint32_t, std::vector<uint32_t>> of_index;
    for (uint32_t s = 0; s < scene.trees.steps.size(); ++s) {
      // The other ranks' same step is all that is needed: it may be the only one of its shape.
      if (!scene.trees.steps[s].observer && !scene.profiles[s].opaque && scene.trees.steps[s].rank.has_value())
        of_index[scene.trees.steps[s].index].push_back(s);
    }
    const std::vector<uint32_t> job = JobOfSteps();
    for (const auto& [index, steps] : of_index) {
      std::map<uint32_t, std::vector<uint32_t>> jobs;
      for (const uint32_t s : steps) jobs[job[s]].push_back(s);
      for (const auto& [id, taken] : jobs) {
        if (taken.size() > 1 && SameWork(taken)) Compare(taken);
      }
    }
  }

  std::vector<Hypothesis> Run() const {
    std::vector<Hypothesis> out;
    for (const auto& [key, hits] : hits_) {
      if (auto h = Test(key.second, hits)) out.push_back(std::move(*h));
    }
    return out;
  }

 private:
  /// For each step what it shares with those that take part in its collectives, and with those that these share one
  /// with. Replicas that serve other requests share none.
  std::vector<uint32_t> JobOfSteps() const {
    const auto& steps = scene_.trees.steps;
    std::vector<uint32_t> job(steps.size());
    std::iota(job.begin(), job.end(), 0u);
    const auto root = [&](uint32_t s) {
      while (job[s] != s) s = job[s] = job[job[s]];
      return s;
    };
    const StepAt step_at(scene_.trees);
    for (const trace::Collective& collective : scene_.trees.collectives) {
      if (collective.point_to_point) continue;
      std::optional<uint32_t> first;
      for (const trace::CollectiveMember& member : collective.members) {
        const auto s = step_at(member.process, member.arrival);
        if (!s) continue;
        if (!first) first = s;
        // Collectives that begin in one step and end in the next join no two steps of other numbers.
        if (steps[*s].index == steps[*first].index) job[root(*s)] = root(*first);
      }
    }
    for (uint32_t s = 0; s < job.size(); ++s) job[s] = root(s);
    return job;
  }

  /// False where a number differs, or only some tell it: ranks may share collectives and serve other requests all the
  /// same. `work` says nothing here: calls that are too many count in it.
  bool SameWork(const std::vector<uint32_t>& steps) const {
    const trace::Step& one = scene_.trees.steps[steps.front()];
    return std::all_of(steps.begin(), steps.end(), [&](uint32_t s) {
      const trace::Step& other = scene_.trees.steps[s];
      return other.kind == one.kind && other.batch == one.batch && other.new_tokens == one.new_tokens &&
             other.context_tokens == one.context_tokens && other.prefill_requests == one.prefill_requests &&
             other.decode_requests == one.decode_requests;
    });
  }

  void Compare(const std::vector<uint32_t>& steps) {
    std::map<uint32_t, std::vector<std::pair<double, uint32_t>>> all;  // name -> calls, step
    for (const uint32_t s : steps) {
      for (const auto& [name, calls] : CallsIn(scene_, s)) all[name].emplace_back(calls.count, s);
    }
    size_t equal = 0;
    std::map<uint32_t, OverRanks> names;
    for (auto& [name, list] : all) {
      std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
      OverRanks over{.most = list[0].first, .step = list[0].second};
      if (list.size() == steps.size()) {
        over.second = list[1].first;
        over.least = list.back().first;
      }
      equal += over.most == over.least;
      names.emplace(name, over);
    }
    const bool same_program = static_cast<double>(equal) >= kSameProgram * static_cast<double>(names.size());
    for (const auto& [name, over] : names) {
      ++compared_[name];
      if (over.most == over.least) ++calm_[name];
      if (over.second < 1 || over.most < kMany * over.second || over.most < over.second + kFewestExtra) continue;
      if (same_program) hits_[{scene_.trees.steps[over.step].process.value(), name}].push_back(over);
    }
  }

  std::optional<Hypothesis> Test(uint32_t name, const std::vector<OverRanks>& hits) const {
    const auto found = calm_.find(name);
    if (found == calm_.end() || hits.size() < kFewestSteps) return std::nullopt;
    const auto calm = static_cast<double>(found->second);
    const auto others = static_cast<double>(compared_.at(name) - hits.size());
    // Where ranks differ in other steps as well they always do: other stages, or work that is routed.
    if (found->second < kFewestCalm || 2 * found->second < hits.size() || calm < kCalm * others) return std::nullopt;
    Hypothesis h;
    h.trouble = Trouble::kSlowOperator;
    h.compares_ranks = true;
    h.process = scene_.trees.steps[hits.front().step].process;
    h.rank = scene_.store.processes[h.process.value()].rank;
    std::vector<double> many;
    std::vector<double> usual;
    Nanos whole = 0;
    for (const OverRanks& hit : hits) {
      AddRepeated(scene_, hit.step, CallsIn(scene_, hit.step).at(name), hit.most / hit.second, h);
      many.push_back(hit.most);
      usual.push_back(hit.second);
      whole += scene_.trees.steps[hit.step].duration();
    }
    if (static_cast<double>(h.lost) < kFelt * static_cast<double>(whole)) return std::nullopt;
    h.calls = ml::Quantile(many, 0.5);
    h.usual_calls = ml::Quantile(usual, 0.5);
    // Ranks differ in at most one of the calm steps and one more; what happens in a row may have one reason. Each name
    // that is compared is one more chance.
    h.false_alarm = std::min(1.0, static_cast<double>(compared_.size()) * std::pow(1 / (calm + 2), kMostIndependent));
    return h;
  }

  const Scene& scene_;
  std::map<uint32_t, size_t> compared_;  ///< name -> steps of the job that call it
  std::map<uint32_t, size_t> calm_;      ///< of these, those in which all ranks call it equally often
  std::map<std::pair<uint32_t, uint32_t>, std::vector<OverRanks>> hits_;  ///< process, name
};

}  // namespace

std::vector<Hypothesis> SearchOperatorCalls(const Scene& scene) {
  return Search(scene).Run();
}

}  // namespace teller::locate
