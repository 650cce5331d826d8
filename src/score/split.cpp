#include "score/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <numeric>

#include "base/rng.hpp"

namespace teller::score {

namespace {

base::Error Usage(std::string text) {
  return {.code = base::Code::kUsage, .message = std::move(text)};
}

void Shuffle(std::vector<uint32_t>& list, base::Rng& rng) {
  for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[rng.Below(i)]);
}

/// All cases, drawn by the seed, those of one kind beside each other.
std::vector<uint32_t> Dealt(const std::vector<Truth>& cases, uint64_t seed) {
  base::Rng rng(seed);
  std::map<std::string, std::vector<uint32_t>> kinds;
  for (uint32_t i = 0; i < cases.size(); ++i)
    kinds[std::string(trace::Name(cases[i].label.fault)) + "/" + cases[i].label.kind].push_back(i);
  std::vector<uint32_t> order;
  for (auto& [kind, list] : kinds) {
    Shuffle(list, rng);
    order.insert(order.end(), list.begin(), list.end());
  }
  return order;
}

Fold Asked(std::string name, size_t count, const std::function<bool(uint32_t)>& asked) {
  Fold fold{.name = std::move(name), .train = {}, .test = {}};
  for (uint32_t i = 0; i < count; ++i) (asked(i) ? fold.test : fold.train).push_back(i);
  return fold;
}

/// The fold of each case: recorded runs are dealt out whole, the largest first, each to the fold with fewest cases.
std::vector<uint32_t> DealRuns(const std::vector<Truth>& cases, const std::vector<uint32_t>& order, unsigned count) {
  std::map<std::string, std::vector<uint32_t>> by_run;
  for (const uint32_t i : order) by_run[cases[i].origin].push_back(i);
  std::vector<std::vector<uint32_t>> runs;
  for (auto& [name, list] : by_run) runs.push_back(std::move(list));
  std::stable_sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<size_t> filled(count, 0);
  std::vector<uint32_t> fold_of(cases.size(), 0);
  for (const auto& list : runs) {
    const auto f = static_cast<uint32_t>(std::min_element(filled.begin(), filled.end()) - filled.begin());
    filled[f] += list.size();
    for (const uint32_t i : list) fold_of[i] = f;
  }
  return fold_of;
}

std::vector<Fold> LeaveOneOut(const std::vector<Truth>& cases, uint64_t seed, bool by_class) {
  std::map<std::string, std::vector<uint32_t>> groups;
  std::vector<uint32_t> controls;
  for (const uint32_t i : Dealt(cases, seed)) {
    if (by_class && !cases[i].label.is_fault) {
      controls.push_back(i);
    } else {
      groups[by_class ? std::string(trace::Name(cases[i].label.fault)) : cases[i].label.stack].push_back(i);
    }
  }
  if (groups.empty()) groups["controls"];
  std::vector<std::string> names;
  for (const auto& [name, list] : groups) names.push_back(name);
  for (size_t i = 0; i < controls.size(); ++i) groups[names[i % names.size()]].push_back(controls[i]);
  std::vector<Fold> folds;
  for (const auto& [name, list] : groups) {
    std::vector<bool> in(cases.size(), false);
    for (const uint32_t i : list) in[i] = true;
    folds.push_back(Asked("without " + name, cases.size(), [&](uint32_t i) { return in[i]; }));
  }
  return folds;
}

}  // namespace

base::Result<std::vector<Fold>> SplitCases(const std::vector<Truth>& cases, const std::string& how, uint64_t seed) {
  const size_t colon = how.find(':');
  const std::string kind = how.substr(0, colon);
  const std::string value = colon == std::string::npos ? "" : how.substr(colon + 1);
  const std::vector<uint32_t> order = Dealt(cases, seed);
  std::vector<uint32_t> place(cases.size());
  for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  if (how == "none") return std::vector<Fold>{Asked("all", cases.size(), [](uint32_t) { return true; })};
  if (how == "leave-class") return LeaveOneOut(cases, seed, true);
  if (how == "leave-stack") return LeaveOneOut(cases, seed, false);
  if (how == "sim-real") {
    return std::vector<Fold>{
        Asked("made -> real", cases.size(), [&](uint32_t i) { return cases[i].source == "real"; })};
  }
  if (kind == "seed") {
    double share = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), share);
    if (error != std::errc() || end != value.data() + value.size() || !(share > 0 && share < 1)) {
      return Usage(fmt::format("\"{}\" is no share between 0 and 1; write --split seed:0.5", value));
    }
    // Every kind gives its share: places of one kind follow each other, and so do their multiples of the share.
    const auto learned = [&](uint32_t i) {
      return static_cast<uint64_t>((place[i] + 1) * share) > static_cast<uint64_t>(place[i] * share);
    };
    return std::vector<Fold>{Asked("drawn", cases.size(), [&](uint32_t i) { return !learned(i); })};
  }
  if (kind == "folds" || kind == "runs") {
    unsigned count = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
    if (error != std::errc() || end != value.data() + value.size() || count < 2 || count > 100) {
      return Usage(fmt::format("\"{}\" is no number of folds from 2 to 100; write --split {}:5", value, kind));
    }
    std::vector<uint32_t> fold_of(cases.size());
    for (uint32_t i = 0; i < cases.size(); ++i) fold_of[i] = place[i] % count;
    if (kind == "runs") fold_of = DealRuns(cases, order, count);
    std::vector<Fold> folds;
    for (unsigned f = 0; f < count; ++f) {
      folds.push_back(Asked(fmt::format("fold {}", f), cases.size(), [&](uint32_t i) { return fold_of[i] == f; }));
    }
    return folds;
  }
  return Usage(fmt::format(
      "no split is called \"{}\"; there are none, seed:SHARE, folds:K, runs:K, leave-class, leave-stack, sim-real",
      how));
}

}  // namespace teller::score
