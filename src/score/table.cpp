#include "score/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/status.hpp"

namespace teller::score {

namespace {

using Values = std::vector<std::optional<double>>;

/// The cases of one group, and what can be computed of them again and again.
class Sample {
 public:
  Sample(const std::vector<const Truth*>& truths, const std::vector<Judged>& judged,
         const std::vector<uint32_t>& members) {
    for (const uint32_t member : members) {
      const auto cluster = static_cast<uint32_t>(cases_.size());
      truths_.push_back(truths[member]);
      cases_.push_back(&judged[member]);
      for (const JobStep& step : judged[member].steps) {
        items_.push_back({.score = step.score, .positive = step.abnormal, .flagged = step.flagged, .cluster = cluster});
        ++(step.abnormal ? abnormal_ : healthy_);
      }
    }
    items_ = ByScore(std::move(items_));
  }

  size_t size() const { return cases_.size(); }
  size_t abnormal_steps() const { return abnormal_; }
  size_t healthy_steps() const { return healthy_; }

  /// Names in the order of Compute.
  static const std::vector<std::string>& Names() {
    static const std::vector<std::string> names = [] {
      std::vector<std::string> list{"case_precision", "case_recall", "case_f1",    "false_alarms",
                                    "answered",       "abstained",   "right",      "step_precision",
                                    "step_recall",    "step_f1",     "step_pr_auc"};
      for (const Prior& prior : kPriors) {
        for (const char* name : {"step_precision_at_", "step_f1_at_", "step_pr_auc_at_"})
          list.push_back(std::string(name) + prior.suffix);
      }
      for (const char* name :
           {"op_ac1", "op_ac3", "op_ac5", "op_avg5", "op_mrr", "rank_ac1", "rank_ac3", "process_ac1", "process_ac3",
            "line_ac1", "class_ac1", "class_macro_f1", "ece", "risk_at_50", "risk_at_80", "risk_at_100"}) {
        list.push_back(name);
      }
      return list;
    }();
    return names;
  }

  /// How bad precision and F1 at the priors may be although no healthy step was called abnormal: with no alarm among n,
  /// a rate of 3/n is not ruled out at 95 %, which redrawing the same steps cannot show. Empty where there was an
  /// alarm.
  std::map<std::string, double> WorstWithoutAlarm() const {
    Confusion counts = StepCounts(std::vector<uint32_t>(cases_.size(), 1));
    std::map<std::string, double> worst;
    if (counts.false_positives > 0 || healthy_ < 3) return worst;
    counts.false_positives = 3;
    counts.true_negatives -= 3;
    for (const Prior& prior : kPriors) {
      const Detection at = Detect(counts, prior.share);
      if (at.precision) worst[std::string("step_precision_at_") + prior.suffix] = *at.precision;
      if (at.f1) worst[std::string("step_f1_at_") + prior.suffix] = *at.f1;
    }
    return worst;
  }

  Values Compute(const std::vector<uint32_t>& times) const {
    Values out;
    Cases(times, out);
    Steps(times, out);
    Localization(times, out);
    Trust(times, out);
    TELLER_CHECK(out.size() == Names().size());
    return out;
  }

 private:
  Confusion StepCounts(const std::vector<uint32_t>& times) const {
    Confusion counts;
    for (const Scored& item : items_) {
      (item.positive  ? item.flagged ? counts.true_positives : counts.false_negatives
       : item.flagged ? counts.false_positives
                      : counts.true_negatives) += static_cast<double>(item.count) * times[item.cluster];
    }
    return counts;
  }

  void Cases(const std::vector<uint32_t>& times, Values& out) const {
    Confusion counts;
    double all = 0;
    double answered = 0;
    double abstained = 0;
    double right = 0;
    for (size_t i = 0; i < cases_.size(); ++i) {
      const double n = times[i];
      const Judged& c = *cases_[i];
      const bool fault = truths_[i]->label.is_fault;
      (fault       ? c.flagged ? counts.true_positives : counts.false_negatives
       : c.flagged ? counts.false_positives
                   : counts.true_negatives) += n;
      all += n;
      answered += c.answered ? n : 0;
      abstained += c.abstained ? n : 0;
      right += c.right ? n : 0;
    }
    const Detection found = Detect(counts, {});
    out.insert(out.end(), {found.precision, found.recall, found.f1});
    const double calm = counts.false_positives + counts.true_negatives;
    out.push_back(calm > 0 ? std::optional(counts.false_positives / calm) : std::nullopt);
    for (const double part : {answered, abstained, right})
      out.push_back(all > 0 ? std::optional(part / all) : std::nullopt);
  }

  void Steps(const std::vector<uint32_t>& times, Values& out) const {
    const Confusion counts = StepCounts(times);
    const Detection found = Detect(counts, {});
    out.insert(out.end(), {found.precision, found.recall, found.f1, AveragePrecision(items_, {}, times)});
    for (const Prior& prior : kPriors) {
      if (static_cast<double>(healthy_) * prior.share < 1) {
        out.insert(out.end(), {std::nullopt, std::nullopt, std::nullopt});
        continue;
      }
      const Detection at = Detect(counts, prior.share);
      out.insert(out.end(), {at.precision, at.f1, AveragePrecision(items_, prior.share, times)});
    }
  }

  std::vector<Place> Places(const std::vector<uint32_t>& times, std::optional<Place> Judged::*place) const {
    std::vector<Place> places;
    for (size_t i = 0; i < cases_.size(); ++i) {
      if (const auto& value = cases_[i]->*place) places.insert(places.end(), times[i], *value);
    }
    return places;
  }

  void Localization(const std::vector<uint32_t>& times, Values& out) const {
    const auto ops = Places(times, &Judged::op_place);
    out.insert(out.end(), {AccuracyAt(ops, 1), AccuracyAt(ops, 3), AccuracyAt(ops, 5), AverageAt(ops, 5),
                           MeanReciprocalRank(ops)});
    const auto ranks = Places(times, &Judged::rank_place);
    out.insert(out.end(), {AccuracyAt(ranks, 1), AccuracyAt(ranks, 3)});
    const auto processes = Places(times, &Judged::process_place);
    out.insert(out.end(), {AccuracyAt(processes, 1), AccuracyAt(processes, 3)});
    out.push_back(AccuracyAt(Places(times, &Judged::line_place), 1));
    std::vector<std::string> truth;
    std::vector<std::string> said;
    double faults = 0;
    double hits = 0;
    for (size_t i = 0; i < cases_.size(); ++i) {
      truth.insert(truth.end(), times[i], cases_[i]->true_class);
      said.insert(said.end(), times[i], cases_[i]->counted_class);
      if (!truths_[i]->label.is_fault) continue;
      faults += times[i];
      hits += cases_[i]->counted_class == cases_[i]->true_class ? times[i] : 0;
    }
    out.push_back(faults > 0 ? std::optional(hits / faults) : std::nullopt);
    out.push_back(MacroF1(truth, said));
  }

  void Trust(const std::vector<uint32_t>& times, Values& out) const {
    std::vector<Confident> answers;
    size_t asked = 0;
    for (size_t i = 0; i < cases_.size(); ++i) {
      asked += times[i];
      // No answer is a wrong one that claims nothing; an abstention is none.
      if (!cases_[i]->abstained) answers.insert(answers.end(), times[i], {cases_[i]->confidence, cases_[i]->right});
    }
    out.push_back(CalibrationError(answers));
    for (const double coverage : {0.5, 0.8, 1.0}) out.push_back(RiskAt(answers, asked, coverage));
  }

  std::vector<const Truth*> truths_;
  std::vector<const Judged*> cases_;
  std::vector<Scored> items_;
  size_t healthy_ = 0;
  size_t abnormal_ = 0;
};

/// The q-th part of a list, none when it is empty.
std::optional<double> Quantile(std::vector<double> values, double q) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

Table TableOf(const std::vector<const Truth*>& truths, const std::vector<Judged>& judged,
              const std::vector<uint32_t>& members, const TableOptions& options) {
  const Sample sample(truths, judged, members);
  Table table;
  table.cases = members.size();
  std::vector<double> wall;
  std::vector<double> memory;
  for (const uint32_t i : members) {
    table.faults += truths[i]->label.is_fault;
    if (judged[i].wall_ns) wall.push_back(static_cast<double>(*judged[i].wall_ns));
    if (judged[i].peak_bytes) memory.push_back(static_cast<double>(*judged[i].peak_bytes));
  }
  table.steps = sample.healthy_steps() + sample.abnormal_steps();
  table.abnormal_steps = sample.abnormal_steps();
  const Values values = sample.Compute(std::vector<uint32_t>(sample.size(), 1));
  const auto intervals = Bootstrap(sample.size(), options.resamples, options.seed,
                                   [&](const std::vector<uint32_t>& times) { return sample.Compute(times); });
  for (size_t i = 0; i < values.size(); ++i) {
    table.figures.push_back({.name = Sample::Names()[i],
                             .value = values[i],
                             .interval = i < intervals.size() ? intervals[i] : Interval95()});
  }
  for (const auto& [name, worst] : sample.WorstWithoutAlarm()) {
    for (Figure& figure : table.figures) {
      if (figure.name == name && figure.interval.low) figure.interval.low = std::min(*figure.interval.low, worst);
    }
  }
  table.figures.push_back({.name = "wall_ns_median", .value = Quantile(wall, 0.5), .interval = {}});
  table.figures.push_back({.name = "wall_ns_p95", .value = Quantile(wall, 0.95), .interval = {}});
  table.figures.push_back({.name = "peak_bytes_max", .value = Quantile(memory, 1), .interval = {}});
  return table;
}

bool Counts(const Truth& truth) {
  return !truth.label.is_fault || truth.expected();
}

}  // namespace

const Figure& Table::Get(const std::string& name) const {
  const auto it =
      std::find_if(figures.begin(), figures.end(), [&](const Figure& figure) { return figure.name == name; });
  TELLER_CHECK(it != figures.end());
  return *it;
}

std::vector<Table> MakeTables(const std::string& method, const std::vector<const Truth*>& truths,
                              const std::vector<Judged>& judged, const TableOptions& options) {
  static constexpr const char* kGroups[] = {"all", "view", "source", "stack", "class", "magnitude", "effect"};
  std::map<std::pair<size_t, std::string>, std::vector<uint32_t>> groups;
  for (uint32_t i = 0; i < truths.size(); ++i) {
    const Truth& truth = *truths[i];
    if (!Counts(truth)) continue;
    const std::string view = !truth.label.is_fault ? "controls" : truth.horizontal() ? "horizontal" : "vertical";
    const std::string values[] = {
        "all", view, truth.source, truth.label.stack, judged[i].true_class, truth.magnitude, judged[i].effect};
    for (size_t g = 0; g < std::size(kGroups); ++g) groups[{g, values[g]}].push_back(i);
  }
  std::vector<Table> tables;
  for (const auto& [key, members] : groups) {
    Table table = TableOf(truths, judged, members, options);
    table.method = method;
    table.group = kGroups[key.first];
    table.value = key.second;
    tables.push_back(std::move(table));
  }
  return tables;
}

std::vector<Loss> GroupLosses(const std::vector<const Truth*>& truths, const std::vector<Judged>& judged) {
  std::map<std::string, Loss> by_reason;
  for (size_t i = 0; i < truths.size(); ++i) {
    const Judged& j = judged[i];
    if (!Counts(*truths[i]) || j.loss.empty()) continue;
    Loss& loss = by_reason[j.loss];
    loss.reason = j.loss;
    loss.cases.push_back(truths[i]->folder);
    ++loss.by_effect[j.effect];
    ++loss.by_what[j.loss_what];
  }
  std::vector<Loss> out;
  for (auto& [reason, loss] : by_reason) out.push_back(std::move(loss));
  std::stable_sort(out.begin(), out.end(),
                   [](const Loss& a, const Loss& b) { return a.cases.size() > b.cases.size(); });
  return out;
}

std::vector<Necessity> CompareNecessity(const std::vector<const Truth*>& truths, const std::vector<Judged>& judged,
                                        const TableOptions& options) {
  std::vector<Necessity> out{{.group = fmt::format("saved_share >= {}", kNecessary)},
                             {.group = fmt::format("saved_share < {}", kNecessary)},
                             {.group = std::string(kNotComputed)}};
  std::vector<std::vector<std::pair<bool, bool>>> verdicts(out.size());
  const auto group = [](const std::optional<double>& saved) -> size_t {
    return !saved ? 2 : *saved >= kNecessary ? 0 : 1;
  };
  for (size_t i = 0; i < truths.size(); ++i) {
    const Judged& j = judged[i];
    if (!Counts(*truths[i]) || !j.flagged || j.candidates.empty()) continue;
    for (const JudgedCandidate& candidate : j.candidates) {
      ++out[group(candidate.saved_share)].candidates;
      out[group(candidate.saved_share)].candidates_right += candidate.right_place;
    }
    const JudgedCandidate& first = j.candidates.front();
    const size_t g = group(first.saved_share);
    ++out[g].verdicts;
    out[g].right += j.right;
    out[g].right_place += first.right_place;
    verdicts[g].emplace_back(j.right, first.right_place);
  }
  for (size_t g = 0; g < out.size(); ++g) {
    const auto& list = verdicts[g];
    const auto intervals =
        Bootstrap(list.size(), options.resamples, options.seed, [&](const std::vector<uint32_t>& times) -> Values {
          double right = 0;
          double place = 0;
          for (size_t i = 0; i < list.size(); ++i) {
            right += list[i].first ? times[i] : 0;
            place += list[i].second ? times[i] : 0;
          }
          return {right / static_cast<double>(list.size()), place / static_cast<double>(list.size())};
        });
    if (intervals.size() == 2) {
      out[g].right_interval = intervals[0];
      out[g].place_interval = intervals[1];
    }
  }
  return out;
}

std::vector<Confirmed> CompareRetests(const std::vector<const Truth*>& truths,
                                      const std::vector<const std::vector<Judged>*>& methods,
                                      const TableOptions& options) {
  struct Row {
    size_t truth = 0;
    bool right = false;
  };
  constexpr size_t kGroupsOfView = 3;
  const auto group = [](const std::optional<double>& share) -> size_t {
    return !share ? 2 : *share >= kNecessary ? 0 : 1;
  };
  std::vector<std::vector<Row>> rows(2 * kGroupsOfView);
  for (const auto* judged : methods) {
    for (size_t i = 0; i < truths.size(); ++i) {
      const Judged& j = (*judged)[i];
      if (!Counts(*truths[i]) || !truths[i]->label.is_fault) continue;
      const bool right_rank = !j.rank_place || *j.rank_place == 1;
      if (j.rank_place && j.retested.asked_rank) rows[group(j.retested.rank)].push_back({i, right_rank});
      if (j.op_place && j.retested.asked_op)
        rows[kGroupsOfView + group(j.retested.op)].push_back({i, *j.op_place == 1 && right_rank});
    }
  }
  std::vector<Confirmed> out;
  if (std::all_of(rows.begin(), rows.end(), [](const auto& list) { return list.empty(); })) return out;
  for (size_t g = 0; g < rows.size(); ++g) {
    Confirmed& confirmed = out.emplace_back();
    confirmed.view = g < kGroupsOfView ? "horizontal" : "vertical";
    const std::string names[kGroupsOfView] = {fmt::format(">= {}", kNecessary), fmt::format("< {}", kNecessary),
                                              "not told"};
    confirmed.group = names[g % kGroupsOfView];
    confirmed.verdicts = rows[g].size();
    for (const Row& row : rows[g]) confirmed.right += row.right;
    const auto intervals =
        Bootstrap(truths.size(), options.resamples, options.seed, [&](const std::vector<uint32_t>& times) -> Values {
          double right = 0;
          double all = 0;
          for (const Row& row : rows[g]) {
            right += row.right ? times[row.truth] : 0;
            all += times[row.truth];
          }
          return {all > 0 ? std::optional(right / all) : std::nullopt};
        });
    if (intervals.size() == 1) confirmed.interval = intervals[0];
  }
  return out;
}

}  // namespace teller::score
