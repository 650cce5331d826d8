#include "inject/plant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/rng.hpp"
#include "retime/calls.hpp"

namespace teller::inject {

namespace {

using trace::FaultClass;
using trace::Step;

class Planner {
 public:
  Planner(const engine::Run& run, const Plant& plant) : run_(run), plant_(plant), rng_(plant.seed) {}

  base::Result<Planted> Plan() {
    const auto& kinds = PlantKinds();
    const bool known =
        std::any_of(kinds.begin(), kinds.end(), [&](const PlantKind& kind) { return plant_.fault == kind.name; });
    if (!known)
      return Usage(
          fmt::format("no fault is called \"{}\"; \"teller lab list\" names those that can be planted", plant_.fault));
    if (run_.trees.steps.empty()) return Usage("the run has no steps, so there is nothing to put a fault into");
    // A label that names a fault which changes nothing would be wrong.
    if (Scaled() && plant_.scale <= 1)
      return Usage("a scale of 1 changes nothing; take more than 1, or --fault none for a control");
    if (plant_.fault == "pause" && plant_.length <= 0)
      return Usage("a pause of no length changes nothing; take a longer one, or --fault none for a control");
    TELLER_TRY(ChooseRank());
    TELLER_TRY(ChooseSteps());
    Label& label = planted_.label;
    label.kind = plant_.fault;
    label.stack = run_.store.processes[process_.value()].engine;
    label.world_size = std::max<int64_t>(1, WorldSize());
    if (plant_.fault == "none") {
      label.fault = FaultClass::kNotAFault;
      label.visible_in.emplace();
      return std::move(planted_);
    }
    label.is_fault = true;
    label.visible_in = {{"trace"}};
    label.culprit.emplace();
    if (rank_) label.culprit->rank = *rank_;
    label.culprit->process = run_.store.processes[process_.value()].name;
    const auto& steps = run_.trees.steps;
    label.window = Interval{steps[planted_.steps.front()].begin, steps[planted_.steps.back()].end};
    base::Status done;
    if (plant_.fault == "slow-operator") done = SlowOperator();
    if (plant_.fault == "straggler") done = Straggler();
    if (plant_.fault == "pause") done = Pause();
    if (plant_.fault == "slow-link") done = SlowLink();
    if (!done.ok()) return done.error();
    return std::move(planted_);
  }

 private:
  static base::Error Usage(std::string text) { return {base::Code::kUsage, std::move(text)}; }

  bool Scaled() const { return plant_.fault != "pause" && plant_.fault != "none"; }

  std::set<int> Ranks() const {
    std::set<int> ranks;
    for (const Step& step : run_.trees.steps) {
      if (step.rank) ranks.insert(*step.rank);
    }
    return ranks;
  }

  int64_t WorldSize() const {
    int64_t world = 0;
    for (const auto& process : run_.store.processes) {
      world = std::max<int64_t>(world, process.world_size.value_or(0));
      if (process.rank) world = std::max<int64_t>(world, *process.rank + 1);
    }
    return world;
  }

  base::Status ChooseRank() {
    const std::set<int> ranks = Ranks();
    if (plant_.rank) {
      if (ranks.count(*plant_.rank) == 0)
        return base::Error{base::Code::kNotFound, fmt::format("no step of rank {} in this run", *plant_.rank)};
      rank_ = plant_.rank;
    } else if (!ranks.empty()) {
      auto chosen = ranks.begin();
      std::advance(chosen, static_cast<int64_t>(rng_.Below(ranks.size())));
      rank_ = *chosen;
    }
    for (const Step& step : run_.trees.steps) {
      if (step.rank != rank_) continue;
      process_ = step.process;
      break;
    }
    return {};
  }

  base::Status ChooseSteps() {
    std::vector<uint32_t> mine;
    for (uint32_t s = 0; s < run_.trees.steps.size(); ++s) {
      if (run_.trees.steps[s].process == process_) mine.push_back(s);
    }
    const uint32_t first = plant_.first_step.value_or(run_.trees.steps[mine[mine.size() / 3]].index);
    const uint32_t last = plant_.last_step.value_or(
        plant_.first_step ? *plant_.first_step : run_.trees.steps[mine[mine.size() * 2 / 3]].index);
    for (const uint32_t s : mine) {
      if (run_.trees.steps[s].index >= first && run_.trees.steps[s].index <= last) planted_.steps.push_back(s);
    }
    if (!planted_.steps.empty()) return {};
    return base::Error{base::Code::kNotFound,
                       fmt::format("no step from {} to {}; there are {} from {} to {}", first, last, mine.size(),
                                   run_.trees.steps[mine.front()].index, run_.trees.steps[mine.back()].index)};
  }

  base::Status SlowOperator() {
    if (plant_.op.empty()) return Usage("a slow operator needs --op NAME");
    const retime::CallFinder finder(run_.store, run_.trees);
    const auto name = finder.FindName(planted_.steps, plant_.op);
    if (!name) return name.error();
    for (const uint32_t step : planted_.steps) {
      for (const trace::SpanRow call : finder.CallsIn(step, *name).calls)
        finder.Scale(call, plant_.scale, planted_.changes);
    }
    planted_.op = run_.store.text(*name);
    Label& label = planted_.label;
    label.fault = FaultClass::kKernelRegression;
    label.accepted = {FaultClass::kStragglerRank, FaultClass::kHostCpuBound};
    label.culprit->layer = "op";
    label.culprit->op = planted_.op;
    return {};
  }

  base::Status Straggler() {
    for (uint32_t t = 0; t < run_.store.tracks.size(); ++t) {
      if (run_.store.tracks[t].process != process_) continue;
      planted_.changes.times.push_back(
          {trace::TrackRow(t), planted_.label.window->begin, planted_.label.window->end, plant_.scale});
    }
    Label& label = planted_.label;
    label.fault = FaultClass::kStragglerRank;
    label.accepted = {FaultClass::kCpuStarved, FaultClass::kGpuClockLimit};
    label.culprit->layer = "host";
    return {};
  }

  /// The process stands still once, at some call of its step: all its threads do, and the others follow by their waits.
  base::Status Pause() {
    const uint32_t s = planted_.steps[rng_.Below(planted_.steps.size())];
    planted_.steps = {s};
    const Step& step = run_.trees.steps[s];
    std::vector<uint32_t> rows;
    for (const trace::Track& track : run_.store.tracks) {
      if (track.process != process_ || track.is_stream) continue;
      for (uint32_t row = track.first_span; row < track.first_span + track.span_count; ++row) {
        const base::Nanos begin = run_.store.spans.begin[row];
        if (begin > step.begin && begin < step.end && run_.store.kind(row) != trace::SpanKind::kProfiler)
          rows.push_back(row);
      }
      if (!rows.empty()) break;  // one thread: what stops it stops what waits for it
    }
    if (rows.empty()) return Usage("the step has no spans to stop between");
    const uint32_t row = rows[rng_.Below(rows.size())];
    planted_.changes.pauses.push_back({trace::SpanRow(row), plant_.length});
    Label& label = planted_.label;
    label.window = Interval{run_.store.spans.begin[row], run_.store.spans.begin[row]};
    label.fault = FaultClass::kRuntimePause;
    label.accepted = {FaultClass::kCpuStarved, FaultClass::kHostCpuBound};
    label.culprit->layer = "process";
    return {};
  }

  base::Status SlowLink() {
    if (!rank_ || Ranks().size() < 2) return Usage("a slow link needs a run of several ranks");
    if (plant_.peer == rank_) return Usage("a link has two ends; take another --peer than --rank");
    const auto& collectives = run_.trees.collectives;
    base::Nanos scaled = 0;
    const auto has = [&](const trace::Collective& c, int rank) {
      return std::any_of(c.members.begin(), c.members.end(), [&](const auto& m) { return m.rank == rank; });
    };
    for (uint32_t c = 0; c < collectives.size(); ++c) {
      const base::Nanos at = collectives[c].members.front().arrival;
      const bool meanwhile = at >= planted_.label.window->begin && at <= planted_.label.window->end;
      if (!meanwhile || !has(collectives[c], *rank_) || (plant_.peer && !has(collectives[c], *plant_.peer))) continue;
      planted_.changes.transfers.push_back({c, plant_.scale});
      scaled += collectives[c].transfer;
    }
    if (planted_.changes.transfers.empty()) return Usage("no collective of these ranks lies in the steps");
    if (scaled <= 0)
      return Usage("the collectives of these ranks transfer nothing for any time, so a scale changes nothing");
    Label& label = planted_.label;
    label.fault = FaultClass::kNetLinkFault;
    label.accepted = {FaultClass::kNetPathWrong, FaultClass::kIntraLinkDegraded};
    label.culprit->layer = "network";
    // Scaled transfers are slow for all members alike: which end it was does not show.
    for (const int rank : Ranks()) label.accepted_ranks.push_back(rank);
    return {};
  }

  const engine::Run& run_;
  const Plant& plant_;
  base::Rng rng_;
  std::optional<int> rank_;
  trace::ProcessRow process_;
  Planted planted_;
};

}  // namespace

const std::vector<PlantKind>& PlantKinds() {
  static const std::vector<PlantKind> kinds = {
      {"none", "nothing: a control that went through the same re-timing", {}},
      {"slow-operator",
       "every call of one operator on one rank takes longer (--op, --scale)",
       {"--rank", "--op", "--scale", "--first-step", "--last-step"}},
      {"straggler",
       "everything on one rank takes longer (--scale)",
       {"--rank", "--scale", "--first-step", "--last-step"}},
      {"pause", "one process stands still once (--length)", {"--rank", "--length", "--first-step", "--last-step"}},
      {"slow-link",
       "transfers of one rank's collectives take longer (--scale, --peer)",
       {"--rank", "--peer", "--scale", "--first-step", "--last-step"}},
  };
  return kinds;
}

base::Result<Planted> PlanFault(const engine::Run& run, const Plant& plant) {
  return Planner(run, plant).Plan();
}

}  // namespace teller::inject
