#include "report/version.hpp"
#include "score/show.hpp"

namespace teller::score {

using Json = nlohmann::ordered_json;

namespace {

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json ToJson(const Interval95& interval) {
  return {OrNull(interval.low), OrNull(interval.high)};
}

Json ToJson(const Table& table) {
  Json figures = Json::object();
  for (const Figure& figure : table.figures)
    figures[figure.name] = {{"value", OrNull(figure.value)}, {"interval", ToJson(figure.interval)}};
  return {{"group", table.group},         {"value", table.value}, {"cases", table.cases},
          {"faults", table.faults},       {"steps", table.steps}, {"abnormal_steps", table.abnormal_steps},
          {"figures", std::move(figures)}};
}

Json ToJson(const Judged& j) {
  return {{"answered", j.answered},
          {"abstained", j.abstained},
          {"abnormal", j.flagged},
          {"confidence", j.confidence},
          {"class", j.said_class},
          {"class_right", j.counted_class == j.true_class},
          {"op_place", OrNull(j.op_place)},
          {"rank_place", OrNull(j.rank_place)},
          {"process_place", OrNull(j.process_place)},
          {"line_place", OrNull(j.line_place)},
          {"saved_share", j.candidates.empty() ? Json(nullptr) : OrNull(j.candidates.front().saved_share)},
          {"retested_rank", j.retested.asked_rank},
          {"retested_op", j.retested.asked_op},
          {"restored_rank", OrNull(j.retested.rank)},
          {"restored_op", OrNull(j.retested.op)},
          {"right", j.right},
          {"loss", j.loss.empty() ? Json(nullptr) : Json(j.loss)},
          {"loss_what", j.loss.empty() ? Json(nullptr) : Json(j.loss_what)},
          {"wall_ns", OrNull(j.wall_ns)},
          {"peak_bytes", OrNull(j.peak_bytes)}};
}

Json ToJson(const std::vector<Confirmed>& confirmed) {
  Json out = Json::array();
  for (const Confirmed& c : confirmed) {
    out.push_back({{"view", c.view},
                   {"group", c.group},
                   {"verdicts", c.verdicts},
                   {"right", c.right},
                   {"interval", ToJson(c.interval)}});
  }
  return out;
}

Json ToJson(const MethodScore& m) {
  Json tables = Json::array();
  for (const Table& table : m.tables) tables.push_back(ToJson(table));
  Json losses = Json::array();
  for (const Loss& loss : m.losses)
    losses.push_back({{"reason", loss.reason},
                      {"count", loss.cases.size()},
                      {"by_effect", loss.by_effect},
                      {"by_what", loss.by_what},
                      {"cases", loss.cases}});
  Json necessity = Json::array();
  for (const Necessity& n : m.necessity) {
    necessity.push_back({{"group", n.group},
                         {"verdicts", n.verdicts},
                         {"right", n.right},
                         {"right_interval", ToJson(n.right_interval)},
                         {"right_place", n.right_place},
                         {"right_place_interval", ToJson(n.place_interval)},
                         {"candidates", n.candidates},
                         {"candidates_right", n.candidates_right}});
  }
  return {{"name", m.method.name},
          {"command", m.method.command.empty() ? Json(nullptr) : Json(m.method.command)},
          {"wall_ns", m.wall_ns},
          {"problems", m.problems},
          {"unanswered", m.unanswered},
          {"remarks", m.remarks},
          {"tables", std::move(tables)},
          {"losses", std::move(losses)},
          {"necessity", std::move(necessity)},
          {"confirmed", ToJson(m.confirmed)}};
}

}  // namespace

Json ScoresToJson(const Scores& scores) {
  Json folds = Json::array();
  for (const Fold& fold : scores.folds) {
    Json train = Json::array();
    Json test = Json::array();
    for (const uint32_t i : fold.train) train.push_back(scores.names[i]);
    for (const uint32_t i : fold.test) test.push_back(scores.names[i]);
    folds.push_back({{"name", fold.name}, {"train", std::move(train)}, {"test", std::move(test)}});
  }
  Json methods = Json::array();
  for (const MethodScore& m : scores.methods) methods.push_back(ToJson(m));
  Json cases = Json::array();
  for (size_t i = 0; i < scores.asked.size(); ++i) {
    const Truth& truth = scores.cases[scores.asked[i]];
    Json answers = Json::object();
    for (const MethodScore& m : scores.methods) answers[m.method.name] = ToJson(m.judged[i]);
    cases.push_back({{"folder", truth.folder},
                     {"name", scores.names[scores.asked[i]]},
                     {"stack", truth.label.stack},
                     {"source", truth.source},
                     {"recording", RecordingOf(truth)},
                     {"is_fault", truth.label.is_fault},
                     {"class", trace::Name(truth.label.fault)},
                     {"kind", truth.label.kind},
                     {"world_size", truth.label.world_size},
                     {"rank", truth.label.culprit ? OrNull(truth.label.culprit->rank) : Json(nullptr)},
                     {"process", truth.label.culprit ? Json(truth.label.culprit->process) : Json(nullptr)},
                     {"ops", truth.accepted_ops},
                     {"view", !truth.label.is_fault ? "controls"
                              : truth.horizontal()  ? "horizontal"
                                                    : "vertical"},
                     {"magnitude", truth.magnitude},
                     {"effect", scores.methods.empty() ? "" : scores.methods.front().judged[i].effect},
                     {"counts", !truth.label.is_fault || truth.expected()},
                     {"answers", std::move(answers)}});
  }
  return {{"schema", "teller.scores/1"},       {"teller", report::kVersion},
          {"seed", scores.options.seed},       {"resamples", scores.options.resamples},
          {"split", scores.options.split},     {"shuffled_labels", scores.options.shuffle_labels},
          {"cases_read", scores.cases.size()}, {"problems", scores.problems},
          {"untested", scores.untested},       {"wall_ns", scores.wall_ns},
          {"prepare_ns", scores.prepare_ns},   {"folds", std::move(folds)},
          {"methods", std::move(methods)},     {"confirmed", ToJson(scores.confirmed)},
          {"cases", std::move(cases)}};
}

}  // namespace teller::score
