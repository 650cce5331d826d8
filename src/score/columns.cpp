#include "score/columns.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/units.hpp"

namespace teller::score {

const std::vector<ColumnSet>& ColumnSets() {
  static const std::vector<ColumnSet> sets{
      {"Cases",
       {{"precision", "case_precision"},
        {"recall", "case_recall"},
        {"F1", "case_f1"},
        {"false alarms", "false_alarms"},
        {"abstained", "abstained"},
        {"all right", "right"}}},
      {"Steps, F1 by share of abnormal ones",
       {{"as counted", "step_f1"},
        {"50 %", "step_f1_at_50"},
        {"10 %", "step_f1_at_10"},
        {"1 %", "step_f1_at_1"},
        {"0.1 %", "step_f1_at_0_1"}}},
      {"Steps, area under precision and recall",
       {{"as counted", "step_pr_auc"},
        {"50 %", "step_pr_auc_at_50"},
        {"10 %", "step_pr_auc_at_10"},
        {"1 %", "step_pr_auc_at_1"},
        {"0.1 %", "step_pr_auc_at_0_1"}}},
      {"Steps, precision and recall",
       {{"precision", "step_precision"}, {"recall", "step_recall"}, {"precision at 1 %", "step_precision_at_1"}}},
      {"Operator or module",
       {{"AC@1", "op_ac1"}, {"AC@3", "op_ac3"}, {"AC@5", "op_ac5"}, {"Avg@5", "op_avg5"}, {"MRR", "op_mrr"}}},
      {"Place",
       {{"rank", "rank_ac1"},
        {"rank in 3", "rank_ac3"},
        {"process", "process_ac1"},
        {"process in 3", "process_ac3"},
        {"log line", "line_ac1"}}},
      {"Class and trust",
       {{"class", "class_ac1"},
        {"macro F1", "class_macro_f1"},
        {"ECE", "ece"},
        {"risk at 50 %", "risk_at_50"},
        {"risk at 80 %", "risk_at_80"},
        {"risk at 100 %", "risk_at_100"}}},
      {"Cost of a case",
       {{"median time", "wall_ns_median"},
        {"95 % time", "wall_ns_p95"},
        {"most memory", "peak_bytes_max"},
        {"answered", "answered"}}}};
  return sets;
}

const std::vector<Column>& GroupColumns() {
  static const std::vector<Column> columns{
      {"case F1", "case_f1"}, {"false al.", "false_alarms"}, {"step F1", "step_f1"}, {"F1 at 1 %", "step_f1_at_1"},
      {"op AC@1", "op_ac1"},  {"rank", "rank_ac1"},          {"class", "class_ac1"}, {"all right", "right"}};
  return columns;
}

std::string CountsText(const std::map<std::string, size_t>& counts) {
  std::vector<std::pair<std::string, size_t>> list(counts.begin(), counts.end());
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [what, count] : list) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, count);
  return text;
}

std::string ValueText(const Figure& figure) {
  if (!figure.value) return "-";
  if (figure.name.starts_with("wall_ns")) return report::Duration(static_cast<base::Nanos>(*figure.value));
  if (figure.name.starts_with("peak_bytes")) return report::Bytes(static_cast<uint64_t>(*figure.value));
  return fmt::format("{:.2f}", *figure.value);
}

std::string IntervalText(const Figure& figure) {
  if (!figure.value || !figure.interval.low || !figure.interval.high) return {};
  return fmt::format("{:.2f}-{:.2f}", *figure.interval.low, *figure.interval.high);
}

std::string ShareText(size_t part, size_t whole) {
  return whole == 0 ? "-" : fmt::format("{:.2f}", static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace teller::score
