#include "locate/repeated_calls.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "locate/maybe.hpp"
#include "locate/operator_counts.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

namespace {

constexpr double kMany = 3;           // times the usual calls,
constexpr double kFewestExtra = 10;   // and so many more
constexpr size_t kFewestSteps = 3;    // with them
constexpr size_t kFewestBeside = 2;   // steps of the kind without them before, after, and with as much to do
constexpr size_t kFewestCalm = 8;     // in all
constexpr double kCalm = 0.9;         // of the other steps: exactly as often as usual
constexpr double kTogether = 0.8;     // of the steps from the first to the last with them
constexpr double kAlike = 2;          // times as many or as few: what runs once for each sequence varies with the batch
constexpr double kSameProgram = 0.8;  // of the operators of such a step are called about as often as usual
constexpr double kFelt = 0.1;         // of the steps' time
constexpr double kMostIndependent = 3;

using CallsByName = std::map<uint32_t, Calls>;

/// Steps of one process and one kind.
struct Series {
  std::vector<uint32_t> steps;
  std::vector<CallsByName> calls;    ///< of each
  std::map<uint32_t, double> usual;  ///< name -> calls in most steps
  std::vector<bool> same;            ///< nearly all operators are called about as often as usual
};

double CountOf(const CallsByName& calls, uint32_t name) {
  const auto found = calls.find(name);
  return found == calls.end() ? 0 : found->second.count;
}

/// Names that less than half of the steps call have no usual number.
void Learn(Series& series) {
  std::map<uint32_t, std::vector<double>> counts;
  for (const CallsByName& calls : series.calls) {
    for (const auto& [name, own] : calls) counts[name].push_back(own.count);
  }
  for (auto& [name, list] : counts) {
    if (2 * list.size() <= series.steps.size()) continue;
    list.resize(series.steps.size(), 0);
    series.usual[name] = ml::Quantile(list, 0.5);
    list = {};
  }
  for (const CallsByName& calls : series.calls) {
    size_t alike = 0;
    size_t all = series.usual.size();
    for (const auto& [name, usual] : series.usual) {
      const double count = CountOf(calls, name);
      alike += count <= kAlike * usual && usual <= kAlike * count;
    }
    for (const auto& [name, own] : calls) all += !series.usual.contains(name);
    series.same.push_back(static_cast<double>(alike) >= kSameProgram * static_cast<double>(all));
  }
}

/// How many steps without the extra calls had at least as much work as every one with them: what runs once for each
/// sequence or token would have been called as often there.
size_t WithAsMuchWork(const trace::Trees& trees, const std::vector<uint32_t>& calm, const std::vector<uint32_t>& hits) {
  int64_t batch = -1;
  int64_t tokens = -1;
  for (const uint32_t s : hits) {
    batch = std::max<int64_t>(batch, trees.steps[s].batch);
    tokens = std::max<int64_t>(tokens, trees.steps[s].new_tokens);
  }
  return static_cast<size_t>(std::count_if(calm.begin(), calm.end(), [&](uint32_t s) {
    return trees.steps[s].batch >= batch && trees.steps[s].new_tokens >= tokens;
  }));
}

std::optional<Hypothesis> Test(const Scene& scene, const Series& series, uint32_t name, double usual) {
  std::vector<size_t> hits;
  std::vector<uint32_t> calm;
  size_t before = 0;
  size_t after = 0;
  for (size_t i = 0; i < series.steps.size(); ++i) {
    const double count = CountOf(series.calls[i], name);
    if (count == usual) {
      calm.push_back(series.steps[i]);
      before += hits.empty();
      ++after;
    }
    if (count < kMany * usual || count < usual + kFewestExtra || !series.same[i]) continue;
    hits.push_back(i);
    after = 0;
  }
  const auto others = static_cast<double>(series.steps.size() - hits.size());
  if (hits.size() < kFewestSteps || before < kFewestBeside || calm.size() < std::max(kFewestCalm, 2 * hits.size()) ||
      static_cast<double>(calm.size()) < kCalm * others ||
      static_cast<double>(hits.size()) < kTogether * static_cast<double>(hits.back() - hits.front() + 1))
    return std::nullopt;
  std::vector<uint32_t> with;
  for (const size_t i : hits) with.push_back(series.steps[i]);
  if (WithAsMuchWork(scene.trees, calm, with) < kFewestBeside) return std::nullopt;
  Hypothesis h;
  h.trouble = Trouble::kSlowOperator;
  h.process = scene.trees.steps[series.steps.front()].process;
  h.rank = scene.store.processes[h.process.value()].rank;
  std::vector<double> many;
  Nanos whole = 0;
  for (const size_t i : hits) {
    const Calls& calls = series.calls[i].at(name);
    AddRepeated(scene, series.steps[i], calls, calls.count / usual, h);
    many.push_back(calls.count);
    whole += scene.trees.steps[series.steps[i]].duration();
  }
  if (static_cast<double>(h.lost) < kFelt * static_cast<double>(whole)) return std::nullopt;
  h.calls = ml::Quantile(many, 0.5);
  h.usual_calls = usual;
  // The number differs in at most one of the calm steps and one more; what happens in a row may have one reason. Each
  // operator is one more chance.
  h.false_alarm = std::min(1.0, static_cast<double>(series.usual.size()) *
                                    std::pow(1 / (static_cast<double>(calm.size()) + 2), kMostIndependent));
  // A program that does something else from now on does not go back.
  if (after < kFewestBeside) h.false_alarm = std::max(h.false_alarm, kMaybe);
  return h;
}

}  // namespace

std::vector<Hypothesis> SearchRepeatedCalls(const Scene& scene) {
  std::map<std::pair<uint32_t, trace::StepKind>, Series> all;
  for (uint32_t s = 0; s < scene.trees.steps.size(); ++s) {
    const trace::Step& step = scene.trees.steps[s];
    if (!step.observer && !scene.profiles[s].opaque) all[{step.process.value(), step.kind}].steps.push_back(s);
  }
  std::vector<Hypothesis> out;
  for (auto& [key, series] : all) {
    if (series.steps.size() < kFewestCalm + kFewestSteps) continue;
    for (const uint32_t s : series.steps) series.calls.push_back(CallsIn(scene, s));
    Learn(series);
    for (const auto& [name, usual] : series.usual) {
      if (auto h = Test(scene, series, name, usual)) out.push_back(std::move(*h));
    }
    series = {};  // the calls of one series at a time
  }
  return out;
}

}  // namespace teller::locate
