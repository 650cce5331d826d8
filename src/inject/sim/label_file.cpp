#include "inject/sim/label_file.hpp"

#include <nlohmann/json.hpp>

namespace teller::inject::sim {

namespace {

using Json = nlohmann::ordered_json;

Json OrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json Pairs(const std::vector<Interval>& intervals) {
  Json json = Json::array();
  for (const Interval& interval : intervals) json.push_back({interval.begin, interval.end});
  return json;
}

Json Steps(const std::vector<AbnormalStep>& steps) {
  Json json = Json::array();
  for (const AbnormalStep& step : steps) {
    Json ranks = Json::array();
    for (const Stay& stay : step.ranks) ranks.push_back({stay.begin, stay.end});
    json.push_back({{"index", step.index}, {"annotation", step.annotation}, {"ranks", std::move(ranks)}});
  }
  return json;
}

/// The places that the engine writes.
Json Places(const KindInfo& kind, Engine engine) {
  Json json = Json::array();
  for (const std::string place : kind.visible) {
    const bool served = place == "spans" || place == "metrics" || place == "requests";
    if ((served && engine == Engine::kFsdp) || (place == "spans" && engine == Engine::kSglang)) continue;
    json.push_back(place);
  }
  return json;
}

}  // namespace

std::string LabelText(const Truth& truth, const Layout& layout, const std::string& name) {
  const KindInfo& kind = *truth.kind;
  const bool is_fault = kind.fault != trace::FaultClass::kNotAFault && kind.fault != trace::FaultClass::kObserverEffect;
  Json accepted = Json::array();
  for (const trace::FaultClass fault : kind.accepted) accepted.push_back(trace::Name(fault));
  Json culprit = nullptr;
  Json victims = Json::array();
  if (is_fault) {
    culprit = {{"rank", truth.rank < 0 ? Json(nullptr) : Json(truth.rank)},
               {"process", OrNull(truth.process)},
               {"layer", kind.layer},
               {"operator", OrNull(truth.op)},
               {"module", nullptr},
               {"function", nullptr},
               {"log_record", OrNull(truth.log_record)}};
    for (int r = 0; truth.rank >= 0 && r < layout.ranks; ++r) {
      if (r != truth.rank) victims.push_back(r);
    }
  }
  Json params = Json::object();
  for (const auto& [key, value] : truth.params) params[key] = value;
  const bool has_window = truth.window.end > truth.window.begin;
  const Json json = {{"schema", "teller.label/1"},
                     {"case", name},
                     {"is_fault", is_fault},
                     {"fault_class", trace::Name(kind.fault)},
                     {"accept_classes", std::move(accepted)},
                     {"fault_kind", kind.name},
                     {"stack", Name(layout.engine)},
                     {"source", "simulated"},
                     {"world_size", layout.ranks},
                     {"culprit", std::move(culprit)},
                     {"accept_ranks", truth.accepted_ranks.empty() ? Json(nullptr) : Json(truth.accepted_ranks)},
                     {"accept_operators", Json::array()},
                     {"victims", std::move(victims)},
                     {"t_start_ns", has_window ? Json(truth.window.begin) : Json(nullptr)},
                     {"t_end_ns", has_window ? Json(truth.window.end) : Json(nullptr)},
                     {"intervals_ns", Pairs(truth.activations)},
                     {"abnormal_steps", is_fault ? Steps(truth.steps) : Json::array()},
                     {"ignore_steps", Json::array()},
                     {"explained_steps", truth.explained ? Steps(truth.steps) : Json::array()},
                     {"observer_ns", Pairs(truth.observer)},
                     {"visible_in", Places(kind, layout.engine)},
                     {"magnitude", truth.magnitude},
                     {"seed", truth.seed},
                     {"params", std::move(params)}};
  return json.dump(1) + "\n";
}

}  // namespace teller::inject::sim
