#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/nanos.hpp"
#include "locate/log_incident.hpp"
#include "locate/log_text.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

using trace::FaultClass;
using trace::Finding;

namespace {

// Acceptance lengths count the token that the model makes anyway, so what was gained is one less.
constexpr size_t kFewestBefore = 3;  // lines of an engine that speculates well
constexpr size_t kFewestAfter = 3;   // lines one after another without gain
constexpr size_t kRecent = 32;       // lines that tell what is usual
constexpr double kGains = 0.5;       // tokens a step that were gained before
constexpr double kFalls = 0.25;      // of them that are left
constexpr double kHardly = 0.15;     // tokens a step: hardly any
constexpr size_t kFewestThroughout = 6;
constexpr double kLongerContext = 3;  // times as much of the KV cache in use

/// One number that a line states.
struct Point {
  size_t row = 0;
  double value = 0;
  double kv = -1;  ///< share of the KV cache in use then; -1 not told
};

class Rates {
 public:
  Rates(const trace::Store& store, const LogFacts& facts, LogCauses& out) : store_(store), facts_(facts), out_(out) {}

  void Run() {
    std::map<std::string, std::vector<Point>> accepted;  // by writer
    std::map<std::string, double> kv;                    // by writer: the last one stated
    for (const size_t row : facts_.order) {
      const trace::LogRecord& record = store_.logs[row];
      const std::string writer =
          std::to_string(record.file.value()) + "/" + record.process + "/" + std::to_string(record.pid.value_or(-1));
      for (const auto& [name, value] : record.statistics) {
        if (name == "kv_usage" && value >= 0 && value <= 1) kv[writer] = value;
        if (name != "accept_length" || value < 1 || value >= 1000) continue;
        const auto use = kv.find(writer);
        accepted[writer].push_back({row, value - 1, use == kv.end() ? -1 : use->second});
      }
    }
    for (const auto& [writer, points] : accepted) Acceptance(points);
  }

 private:
  Finding Start(FaultClass fault, const std::vector<Point>& points, std::string_view layer) const {
    Finding finding;
    finding.fault = fault;
    finding.view = "vertical";
    Signal signal;
    signal.row = points.front().row;
    signal.own_word = true;
    finding.culprit = CulpritOf(store_, facts_, signal);
    finding.culprit.layer = layer;
    finding.onset = store_.logs[points.front().row].at;
    finding.end = store_.logs[points.back().row].at;
    AddEvidence(finding, store_, points.front().row);
    if (points.size() > 1) AddEvidence(finding, store_, points.back().row);
    return finding;
  }

  void Publish(Finding finding, double false_alarm) {
    finding.false_alarm_probability = false_alarm;
    finding.score = ScoreOf(false_alarm);
    out_.findings.push_back(std::move(finding));
  }

  static double Recent(const std::vector<double>& values) {
    return ml::Quantile(std::span(values).last(std::min(values.size(), kRecent)), 0.5);
  }

  /// What was gained falls to next to nothing and stays there, or is next to nothing all along.
  void Acceptance(const std::vector<Point>& points) {
    std::vector<double> before;
    std::vector<double> kv_before;
    std::vector<double> kv_low;
    std::vector<Point> low;
    for (const Point& point : points) {
      const double usual = before.size() < kFewestBefore ? 0 : Recent(before);
      const bool fallen = usual >= kGains && point.value <= kFalls * usual;
      if (fallen || (before.empty() && point.value <= kHardly)) {
        low.push_back(point);
        if (point.kv >= 0) kv_low.push_back(point.kv);
        continue;
      }
      if (low.size() >= kFewestAfter && !before.empty()) break;
      low.clear();
      kv_low.clear();
      before.push_back(point.value);
      if (point.kv >= 0) kv_before.push_back(point.kv);
    }
    const bool throughout = before.empty();
    if (low.size() < (throughout ? kFewestThroughout : kFewestAfter)) return;
    std::vector<double> left;
    for (const Point& point : low) left.push_back(point.value);
    // A draft model that was made for short contexts guesses wrong in long ones: the work's, not a fault of the engine.
    if (!kv_before.empty() && !kv_low.empty() &&
        ml::Quantile(kv_low, 0.5) >= kLongerContext * std::max(Recent(kv_before), 1e-3)) {
      out_.notes.push_back(
          {fmt::format(
               "speculative decoding gains {:.2f} tokens a step where {:.2f} were usual, since contexts take "
               "{:.0f} % of the KV cache instead of {:.0f} %: what is drafted for long contexts is rarely right",
               ml::Quantile(left, 0.5), Recent(before), 100 * ml::Quantile(kv_low, 0.5), 100 * Recent(kv_before)),
           store_.logs[low.front().row].at, store_.logs[low.back().row].at});
      return;
    }
    Finding finding = Start(FaultClass::kSpecCollapse, low, "python");
    if (finding.culprit.process.find("APIServer") != std::string::npos) finding.culprit.process = "EngineCore";
    finding.alternatives = {{FaultClass::kNotAFault, 0.2}};
    finding.explanation = fmt::format(
        "Speculative decoding gains {:.2f} tokens a step in {} statistics lines in a row{} [E1]: drafting and checking "
        "cost what they always do and bring hardly anything.",
        ml::Quantile(left, 0.5), low.size(),
        throughout ? std::string(", from the first one on")
                   : fmt::format(", where {:.2f} were usual before", Recent(before)));
    Publish(std::move(finding), low.size() >= 2 * kFewestAfter ? 4e-3 : 8e-3);
  }

  const trace::Store& store_;
  const LogFacts& facts_;
  LogCauses& out_;
};

}  // namespace

void FindRates(const trace::Store& store, const LogFacts& facts, LogCauses& out) {
  Rates(store, facts, out).Run();
}

}  // namespace teller::locate
