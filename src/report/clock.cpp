#include "report/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "report/units.hpp"

namespace teller::report {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownRanks = 16;

struct RankClock {
  int rank = -1;
  const trace::ProcessClock* clock = nullptr;
};

/// Order: by rank.
std::vector<RankClock> RankClocks(const engine::Run& run) {
  std::vector<RankClock> out;
  for (size_t p = 0; p < std::min(run.store.processes.size(), run.trees.clocks.size()); ++p) {
    if (run.store.processes[p].rank.has_value()) out.push_back({*run.store.processes[p].rank, &run.trees.clocks[p]});
  }
  std::stable_sort(out.begin(), out.end(), [](const RankClock& a, const RankClock& b) { return a.rank < b.rank; });
  return out;
}

bool HasError(const trace::Trees& trees) {
  return !trees.clock_method.empty() && trees.clock_method != "uncalibrated";
}

std::string Signed(base::Nanos ns) {
  return (ns < 0 ? "-" : "+") + Duration(ns < 0 ? -std::max(ns, -INT64_MAX) : ns);
}

std::string How(const trace::ProcessClock& clock) {
  if (!clock.linked) return "not tied to the others";
  if (clock.error == 0) return "the reference";
  const std::string error = "+/- " + Duration(clock.error);
  if (!clock.corrected) return "agrees, " + error;
  return fmt::format("corrected by {} and {:+.2f} ppm, {}", Signed(clock.offset), clock.drift * 1e6, error);
}

}  // namespace

std::string ClockLine(const engine::Run& run) {
  if (run.trees.clock_method.empty()) return {};
  std::string line = "clocks of the ranks: " + run.trees.clock_method;
  if (run.trees.clock_error > 0) line += ", +/- " + Duration(run.trees.clock_error);
  const auto loose =
      std::count_if(run.trees.clocks.begin(), run.trees.clocks.end(), [](const auto& c) { return !c.linked; });
  if (HasError(run.trees) && run.trees.clock_method != "single clock" && loose > 0) {
    size_t ranks = 0;
    for (const RankClock& r : RankClocks(run)) ranks += !r.clock->linked;
    if (ranks > 0) line += fmt::format("; {} not tied to the others", Count(ranks, "rank"));
  }
  return line;
}

Json ClockToJson(const engine::Run& run, const std::string& domain) {
  const bool known = HasError(run.trees);
  Json ranks = Json::array();
  for (const RankClock& r : RankClocks(run)) {
    const trace::ProcessClock& c = *r.clock;
    ranks.push_back({{"rank", r.rank},
                     {"corrected", c.corrected},
                     {"offset_ns", c.linked ? Json(c.offset) : Json(nullptr)},
                     {"drift_ppm", c.linked ? Json(c.drift * 1e6) : Json(nullptr)},
                     {"error_ns", c.linked ? Json(c.error) : Json(nullptr)},
                     {"collectives", c.collectives}});
  }
  return {{"domain", domain.empty() ? Json(nullptr) : Json(domain)},
          {"error_ns", known ? Json(run.trees.clock_error) : Json(nullptr)},
          {"method", run.trees.clock_method.empty() ? Json(nullptr) : Json(run.trees.clock_method)},
          {"spread_ns", known ? Json(run.trees.clock_spread) : Json(nullptr)},
          {"ranks", ranks}};
}

void AddClocks(const engine::Run& run, Page& page) {
  const std::vector<RankClock> ranks = RankClocks(run);
  if (ranks.size() < 2) return;
  page.Gap();
  page.Head(ClockLine(run));
  const size_t shown = page.options().all ? ranks.size() : std::min(ranks.size(), kShownRanks);
  for (size_t i = 0; i < shown; ++i) {
    page.Line(2, fmt::format("rank {:>4}  {}; {}", ranks[i].rank, How(*ranks[i].clock),
                             Count(ranks[i].clock->collectives, "collective")));
  }
  if (shown < ranks.size()) page.Line(2, fmt::format("and {} more", ranks.size() - shown), Ink::kDim);
}

}  // namespace teller::report
