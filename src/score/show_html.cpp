#include <fmt/format.h>

#include <algorithm>

#include "report/diagnosis_html.hpp"
#include "report/printable.hpp"
#include "score/columns.hpp"
#include "score/show.hpp"

namespace teller::score {

namespace {

constexpr const char* kStyle =
    "body{font:14px/1.4 system-ui,sans-serif;margin:2em;max-width:80em;color:#222}"
    "table{border-collapse:collapse;margin:0 0 2em}th,td{padding:.2em .7em;border-bottom:1px solid "
    "#ddd;text-align:right}"
    "th:first-child,td:first-child{text-align:left}small{color:#777}svg{display:block;margin:0 0 1.5em}h2{margin:1.2em "
    "0 .4em}";

std::string Escaped(const std::string& text) {
  return report::EscapeHtml(report::Printable(text));
}

const Table* AllOf(const MethodScore& method) {
  const auto it =
      std::find_if(method.tables.begin(), method.tables.end(), [](const Table& table) { return table.group == "all"; });
  return it == method.tables.end() ? nullptr : &*it;
}

std::string Cell(const Figure& figure) {
  const std::string interval = IntervalText(figure);
  return "<td>" + report::EscapeHtml(ValueText(figure)) + (interval.empty() ? "" : " <small>" + interval + "</small>") +
         "</td>";
}

/// One bar a method, from 0 to 1, with a line over its interval.
std::string Bars(const Scores& scores, const Column& column, const char* set) {
  constexpr int kLabel = 190;
  constexpr int kWidth = 420;
  constexpr int kRow = 22;
  std::string bars;
  int row = 0;
  for (const MethodScore& method : scores.methods) {
    const Table* all = AllOf(method);
    if (all == nullptr) continue;
    const Figure& figure = all->Get(column.figure);
    const int y = 24 + row++ * kRow;
    const auto x = [&](double value) { return kLabel + std::clamp(value, 0.0, 1.0) * kWidth; };
    bars += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kLabel - 8, y + 13,
                        Escaped(method.method.name));
    if (figure.value) {
      bars += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"16\" fill=\"{}\"/>", kLabel, y,
                          x(*figure.value) - kLabel, method.method.name == "teller" ? "#2b6cb0" : "#a0aec0");
    }
    if (figure.value && figure.interval.low && figure.interval.high) {
      bars += fmt::format("<line x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\" stroke=\"#222\"/>",
                          x(*figure.interval.low), y + 8, x(*figure.interval.high), y + 8);
    }
    bars += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>", kLabel + kWidth + 10, y + 13,
                        report::EscapeHtml(ValueText(figure)));
  }
  return fmt::format(
      "<svg width=\"{}\" height=\"{}\" font-size=\"13\" role=\"img\"><text x=\"0\" y=\"14\" font-weight=\"bold\">{}: "
      "{}</text>{}</svg>\n",
      kLabel + kWidth + 80, 30 + row * kRow, report::EscapeHtml(set), report::EscapeHtml(column.title), bars);
}

constexpr const char* kColours[] = {"#2b6cb0", "#c05621", "#2f855a", "#6b46c1",
                                    "#b83280", "#00838f", "#744210", "#4a5568"};

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< both from 0 to 1
};

/// Lines in a square with their names beside it.
std::string Lines(const std::string& title, const std::string& across, const std::vector<Curve>& curves) {
  constexpr int kSide = 300;
  std::string lines;
  for (size_t i = 0; i < curves.size(); ++i) {
    const char* colour = kColours[i % std::size(kColours)];
    const char* dashes = i < std::size(kColours) ? "" : " stroke-dasharray=\"5 3\"";
    std::string path;
    for (const auto& [x, y] : curves[i].points)
      path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", 40 + x * kSide, 10 + (1 - y) * kSide);
    lines +=
        fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{} points=\"{}\"/>", colour, dashes, path);
    lines += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>", 60 + kSide, 22 + 16 * i, colour,
                         Escaped(curves[i].name));
  }
  std::string axes =
      fmt::format("<rect x=\"40\" y=\"10\" width=\"{0}\" height=\"{0}\" fill=\"none\" stroke=\"#bbb\"/>", kSide);
  for (const double tick : {0.0, 0.5, 1.0})
    axes += fmt::format("<text x=\"32\" y=\"{:.1f}\" text-anchor=\"end\">{:.1f}</text>", 15 + (1 - tick) * kSide, tick);
  axes += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>", 40 + kSide / 2, kSide + 30,
                      Escaped(across));
  return fmt::format("<h2>{}</h2><svg width=\"760\" height=\"{}\" font-size=\"12\">{}{}</svg>\n", Escaped(title),
                     std::max<size_t>(kSide + 40, 30 + 16 * curves.size()), axes, lines);
}

/// How the F1 of steps falls as abnormal ones become rare: methods that hold up stay flat.
std::string PriorLines(const Scores& scores) {
  std::vector<Curve> curves;
  for (const MethodScore& method : scores.methods) {
    const Table* all = AllOf(method);
    if (all == nullptr) continue;
    Curve curve{.name = method.method.name, .points = {}};
    for (size_t p = 0; p < std::size(kPriors); ++p) {
      const Figure& figure = all->Get(std::string("step_f1_at_") + kPriors[p].suffix);
      if (figure.value) curve.points.emplace_back(static_cast<double>(p) / (std::size(kPriors) - 1), *figure.value);
    }
    curves.push_back(std::move(curve));
  }
  return Lines("Steps: F1 by share of abnormal ones", "50 %, 10 %, 1 %, 0.1 % of the steps abnormal", curves);
}

/// Share of wrong answers among the surest, by how many are counted; abstentions cut a line short.
std::string RiskLines(const Scores& scores) {
  std::vector<Curve> curves;
  for (const MethodScore& method : scores.methods) {
    Curve curve{.name = method.method.name, .points = {}};
    std::vector<Confident> answers;
    size_t asked = 0;
    for (size_t i = 0; i < method.judged.size(); ++i) {
      const Truth& truth = scores.cases[scores.asked[i]];
      if (truth.label.is_fault && !truth.expected()) continue;
      ++asked;
      if (!method.judged[i].abstained) answers.push_back({method.judged[i].confidence, method.judged[i].right});
    }
    for (int percent = 5; percent <= 100; percent += 5) {
      if (const auto risk = RiskAt(answers, asked, percent / 100.0)) curve.points.emplace_back(percent / 100.0, *risk);
    }
    curves.push_back(std::move(curve));
  }
  return Lines("Risk at coverage", "share of the cases that the surest answers cover", curves);
}

std::string TableOfSet(const Scores& scores, const ColumnSet& set) {
  std::string text = fmt::format("<h2>{}</h2>\n<table><tr><th>method</th>", report::EscapeHtml(set.title));
  for (const Column& column : set.columns) text += "<th>" + report::EscapeHtml(column.title) + "</th>";
  text += "</tr>\n";
  for (const MethodScore& method : scores.methods) {
    const Table* all = AllOf(method);
    if (all == nullptr) continue;
    text += "<tr><td>" + Escaped(method.method.name) + "</td>";
    for (const Column& column : set.columns) text += Cell(all->Get(column.figure));
    text += "</tr>\n";
  }
  return text + "</table>\n";
}

std::string TableOfGroup(const Scores& scores, const std::string& group) {
  std::string text = "<h2>By " + group + "</h2>\n<table><tr><th>" + group + "</th><th>method</th><th>cases</th>";
  for (const Column& column : GroupColumns()) text += "<th>" + report::EscapeHtml(column.title) + "</th>";
  text += "</tr>\n";
  std::vector<std::pair<std::string, std::string>> rows;
  for (const MethodScore& method : scores.methods) {
    for (const Table& table : method.tables) {
      if (table.group != group) continue;
      std::string row = fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td>", Escaped(table.value),
                                    Escaped(method.method.name), table.cases);
      for (const Column& column : GroupColumns()) row += Cell(table.Get(column.figure));
      rows.emplace_back(table.value, row + "</tr>\n");
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [value, row] : rows) text += row;
  return text + "</table>\n";
}

std::string LossesOf(const MethodScore& method) {
  if (method.losses.empty()) return {};
  std::string text =
      "<h2>What " + Escaped(method.method.name) +
      " lost</h2>\n<table><tr><th>reason</th><th>cases</th><th>effect</th><th>what</th><th>which</th></tr>\n";
  for (const Loss& loss : method.losses) {
    std::string names;
    for (size_t i = 0; i < loss.cases.size() && i < 20; ++i) names += (i > 0 ? ", " : "") + Escaped(loss.cases[i]);
    text +=
        fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", Escaped(loss.reason),
                    loss.cases.size(), Escaped(CountsText(loss.by_effect)), Escaped(CountsText(loss.by_what)), names);
  }
  return text + "</table>\n";
}

/// Verdicts by what the method itself says that a repair would save, and by what re-timing says of them.
std::string TestedVerdicts(const Scores& scores) {
  std::string rows;
  const auto add = [&](const std::string& method, const std::string& test, size_t verdicts, size_t right,
                       const Interval95& interval) {
    if (verdicts == 0) return;
    const std::string range = interval.low && interval.high
                                  ? fmt::format(" <small>{:.2f}-{:.2f}</small>", *interval.low, *interval.high)
                                  : "";
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}{}</td></tr>\n", Escaped(method), Escaped(test),
                        verdicts, ShareText(right, verdicts), range);
  };
  const auto retimed = [&](const std::string& method, const std::vector<Confirmed>& confirmed) {
    for (const Confirmed& c : confirmed)
      add(method, "re-timed, " + c.view + ", " + c.group, c.verdicts, c.right, c.interval);
  };
  for (const MethodScore& m : scores.methods) {
    const bool says = std::any_of(m.necessity.begin(), m.necessity.end(),
                                  [](const Necessity& n) { return n.group != kNotComputed && n.verdicts > 0; });
    for (const Necessity& n : m.necessity) {
      if (says) add(m.method.name, n.group, n.verdicts, n.right, n.right_interval);
    }
    retimed(m.method.name, m.confirmed);
  }
  retimed("all methods but teller", scores.confirmed);
  if (rows.empty()) return {};
  return "<h2>Would the repair help?</h2>\n<table><tr><th>method</th><th>share saved</th><th>verdicts</th>"
         "<th>right</th></tr>\n" +
         rows + "</table>\n";
}

}  // namespace

std::string ScoresToHtml(const Scores& scores) {
  std::string text = fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src "
      "'unsafe-inline'\"><title>Scores</title><style>{}</style>\n<h1>Scores</h1>\n"
      "<p>{} cases asked of {}; split {}, seed {}{}. Small figures: where 95 % of {} redrawn samples of cases "
      "lie.</p>\n",
      kStyle, scores.asked.size(), scores.cases.size(), Escaped(scores.options.split), scores.options.seed,
      scores.options.shuffle_labels ? ", labels shuffled" : "", scores.options.resamples);
  static constexpr const char* kDrawn[] = {"case_f1",        "step_f1_at_1", "step_pr_auc_at_1", "op_ac1", "rank_ac1",
                                           "class_macro_f1", "right"};
  for (const ColumnSet& set : ColumnSets()) {
    for (const Column& column : set.columns) {
      if (std::find(std::begin(kDrawn), std::end(kDrawn), std::string_view(column.figure)) != std::end(kDrawn))
        text += Bars(scores, column, set.title);
    }
  }
  text += PriorLines(scores) + RiskLines(scores);
  for (const ColumnSet& set : ColumnSets()) text += TableOfSet(scores, set);
  for (const char* group : {"view", "source", "stack", "class", "magnitude", "effect"})
    text += TableOfGroup(scores, group);
  text += TestedVerdicts(scores);
  for (const MethodScore& method : scores.methods) text += LossesOf(method);
  return text + "</html>\n";
}

}  // namespace teller::score
