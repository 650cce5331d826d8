#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/printable.hpp"
#include "report/units.hpp"
#include "score/columns.hpp"
#include "score/show.hpp"

namespace teller::score {

namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Columns as wide as their widest cell, the first to the left, the others to the right.
std::string Aligned(const Rows& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c)
      line += c == 0 ? fmt::format("  {:<{}}", row[c], widths[c]) : fmt::format("  {:>{}}", row[c], widths[c]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text + "\n";
}

std::string Cell(const Figure& figure) {
  const std::string interval = IntervalText(figure);
  return interval.empty() ? ValueText(figure) : ValueText(figure) + " " + interval;
}

const Table* AllOf(const MethodScore& method) {
  const auto it =
      std::find_if(method.tables.begin(), method.tables.end(), [](const Table& table) { return table.group == "all"; });
  return it == method.tables.end() ? nullptr : &*it;
}

std::string Head(const Scores& scores) {
  size_t faults = 0;
  for (const uint32_t i : scores.asked) faults += scores.cases[i].label.is_fault;
  std::string text =
      fmt::format("{} cases, {} asked: {} faults, {} controls; split {}, seed {}{}; {} read, {} all in all\n",
                  scores.cases.size(), scores.asked.size(), faults, scores.asked.size() - faults, scores.options.split,
                  scores.options.seed, scores.options.shuffle_labels ? ", labels shuffled" : "",
                  report::Duration(scores.prepare_ns), report::Duration(scores.wall_ns));
  for (const MethodScore& method : scores.methods) {
    if (const Table* all = AllOf(method)) {
      text += fmt::format(
          "{} steps count, {} of them abnormal. Behind each figure: 95 % of {} redrawn samples of cases lie there.\n",
          all->steps, all->abnormal_steps, scores.options.resamples);
      break;
    }
  }
  for (const std::string& problem : scores.problems) text += "not read: " + report::Printable(problem) + "\n";
  for (const std::string& problem : scores.untested)
    text += "verdicts not tested: " + report::Printable(problem) + "\n";
  for (const MethodScore& method : scores.methods) {
    if (method.unanswered > 0)
      text +=
          fmt::format("{}: no answer to {} of {} cases\n", method.method.name, method.unanswered, scores.asked.size());
    for (size_t i = 0; i < method.problems.size() && i < 5; ++i)
      text += report::Printable(method.method.name + ": " + method.problems[i]) + "\n";
    if (method.problems.size() > 5)
      text += fmt::format("{}: {} more problems\n", method.method.name, method.problems.size() - 5);
  }
  return text + "\n";
}

std::string Groups(const Scores& scores) {
  std::string text;
  for (const char* group : {"view", "source", "stack", "class", "magnitude", "effect"}) {
    Rows rows{{std::string("By ") + group, "method", "cases"}};
    for (const Column& column : GroupColumns()) rows[0].push_back(column.title);
    std::map<std::string, Rows> by_value;
    for (const MethodScore& method : scores.methods) {
      for (const Table& table : method.tables) {
        if (table.group != group) continue;
        std::vector<std::string> row{report::Printable(table.value), method.method.name, std::to_string(table.cases)};
        for (const Column& column : GroupColumns()) row.push_back(ValueText(table.Get(column.figure)));
        by_value[table.value].push_back(std::move(row));
      }
    }
    for (auto& [value, some] : by_value) rows.insert(rows.end(), some.begin(), some.end());
    text += Aligned(rows);
  }
  return text;
}

std::string Interval(const Interval95& interval) {
  return interval.low && interval.high ? fmt::format("{:.2f}-{:.2f}", *interval.low, *interval.high) : "-";
}

std::string NecessityText(const MethodScore& method) {
  if (std::all_of(method.necessity.begin(), method.necessity.end() - 1,
                  [](const Necessity& n) { return n.verdicts == 0; }))
    return {};
  Rows rows{{method.method.name + ": would the repair have helped", "verdicts", "all right", "", "place right", "",
             "candidates", "place right"}};
  for (const Necessity& n : method.necessity) {
    rows.push_back({n.group, std::to_string(n.verdicts), ShareText(n.right, n.verdicts), Interval(n.right_interval),
                    ShareText(n.right_place, n.verdicts), Interval(n.place_interval), std::to_string(n.candidates),
                    ShareText(n.candidates_right, n.candidates)});
  }
  return Aligned(rows);
}

std::string ConfirmedText(const std::string& who, const std::vector<Confirmed>& confirmed) {
  if (confirmed.empty()) return {};
  Rows rows{{who + ": gone with the accused at its normal time", "verdicts", "right", ""}};
  for (const Confirmed& c : confirmed) {
    const std::string what = c.view == "horizontal" ? "rank" : "operator";
    rows.push_back({fmt::format("{} ({}), {}", c.view, what, c.group), std::to_string(c.verdicts),
                    ShareText(c.right, c.verdicts), Interval(c.interval)});
  }
  return Aligned(rows);
}

std::string LossText(const MethodScore& method) {
  constexpr size_t kNamed = 4;
  if (method.losses.empty()) return {};
  std::string text = method.method.name +
                     ": lost, by reason; effect: how much longer the steps under the fault are than healthy ones\n";
  for (const Loss& loss : method.losses) {
    text += fmt::format("  {:>4}  {}\n", loss.cases.size(), report::Printable(loss.reason));
    if (loss.reason != "false alarm") text += "          effect: " + CountsText(loss.by_effect) + "\n";
    text += "          " + report::Printable(CountsText(loss.by_what)) + "\n";
    for (size_t i = 0; i < loss.cases.size() && i < kNamed; ++i)
      text += "          " + report::Printable(loss.cases[i]) + "\n";
    if (loss.cases.size() > kNamed) text += fmt::format("          and {} more\n", loss.cases.size() - kNamed);
  }
  return text + "\n";
}

}  // namespace

std::string ScoresToText(const Scores& scores) {
  std::string text = Head(scores);
  for (const ColumnSet& set : ColumnSets()) {
    Rows rows{{set.title}};
    for (const Column& column : set.columns) rows[0].push_back(column.title);
    for (const MethodScore& method : scores.methods) {
      const Table* all = AllOf(method);
      if (all == nullptr) continue;
      std::vector<std::string> row{method.method.name};
      for (const Column& column : set.columns) row.push_back(Cell(all->Get(column.figure)));
      rows.push_back(std::move(row));
    }
    text += Aligned(rows);
  }
  text += Groups(scores);
  for (const MethodScore& method : scores.methods)
    text += NecessityText(method) + ConfirmedText(method.method.name, method.confirmed);
  text += ConfirmedText("all methods but teller", scores.confirmed);
  // Of many methods the losses of the first, which is the one to improve, are enough; the JSON has all.
  if (!scores.methods.empty()) text += LossText(scores.methods.front());
  return text;
}

}  // namespace teller::score
