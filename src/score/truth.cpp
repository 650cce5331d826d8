#include "score/truth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "score/json_file.hpp"

namespace teller::score {

using Json = nlohmann::ordered_json;
using inject::Interval;

namespace {

const Json* Find(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::optional<int64_t> Whole(const Json& value) {
  return value.is_number_integer() ? std::optional(value.get<int64_t>()) : std::nullopt;
}

/// How strong the fault is, in words that group cases.
std::string MagnitudeOf(const Json& label) {
  if (const Json* share = Find(label, "magnitude"); share != nullptr && share->is_number()) {
    const double value = share->get<double>();
    return value < 0.25 ? "0-0.25" : value < 0.5 ? "0.25-0.5" : value < 0.75 ? "0.5-0.75" : "0.75-1";
  }
  const Json* params = Find(label, "params");
  if (params == nullptr || !params->is_object()) return "not told";
  const std::string word = Text(*params, "magnitude");
  if (!word.empty()) return word;
  const Json* scale = Find(*params, "scale");
  const Json* length = Find(*params, "length_ns");
  if (Text(label, "fault_kind") == "pause" && length != nullptr && length->is_number()) {
    const double ms = length->get<double>() / 1e6;
    return ms < 20 ? "below 20 ms" : ms < 100 ? "20-100 ms" : "100 ms and more";
  }
  if (scale == nullptr || !scale->is_number()) return "not told";
  const double factor = scale->get<double>();
  return factor <= 1 ? "x1" : factor < 1.5 ? "x1-1.5" : factor < 3 ? "x1.5-3" : "x3 and more";
}

void ReadSteps(const Json& label, Truth& truth) {
  const Json* steps = Find(label, "abnormal_steps");
  truth.steps_told = !truth.label.is_fault || steps != nullptr;
  if (steps == nullptr || !steps->is_array()) return;
  for (const Json& step : *steps) {
    if (const auto index = Whole(step)) {
      truth.abnormal_indices.push_back(static_cast<uint32_t>(*index));
      continue;
    }
    const Json* ranks = step.is_object() ? Find(step, "ranks") : nullptr;
    if (ranks == nullptr || !ranks->is_array()) continue;
    std::vector<Interval> times;
    bool finished = true;
    for (const Json& pair : *ranks) {
      const auto begin = pair.is_array() && pair.size() == 2 ? Whole(pair[0]) : std::nullopt;
      if (!begin) continue;
      finished &= Whole(pair[1]).has_value();
      times.push_back({*begin, Whole(pair[1]).value_or(INT64_MAX)});
    }
    if (!finished) {
      base::Nanos first = times.front().begin;
      for (const Interval& time : times) first = std::min(first, time.begin);
      truth.unfinished.push_back({first, INT64_MAX});
    } else if (!times.empty()) {
      truth.abnormal.push_back(std::move(times));
    }
  }
}

/// Ordinals under a key, whether given as numbers or as objects with "index".
std::vector<uint32_t> Ordinals(const Json& label, const char* key) {
  std::vector<uint32_t> out;
  const Json* list = Find(label, key);
  if (list == nullptr || !list->is_array()) return out;
  for (const Json& entry : *list) {
    const Json* index = entry.is_object() ? Find(entry, "index") : &entry;
    const auto value = index != nullptr ? Whole(*index) : std::nullopt;
    if (value && *value >= 0) out.push_back(static_cast<uint32_t>(*value));
  }
  return out;
}

/// True when half of the shorter one lies in the other.
bool Overlap(const Interval& a, base::Nanos begin, base::Nanos end) {
  const base::Nanos common = std::min(a.end, end) - std::max(a.begin, begin);
  return common > 0 && common * 2 >= std::min(a.end - a.begin, end - begin);
}

}  // namespace

bool Truth::steps_shown() const {
  if (!label.is_fault || !label.visible_in) return true;
  return std::find(label.visible_in->begin(), label.visible_in->end(), "trace") != label.visible_in->end();
}

bool Truth::expected() const {
  if (!label.is_fault) return false;
  if (!label.visible_in) return true;
  return std::any_of(label.visible_in->begin(), label.visible_in->end(),
                     [](const std::string& place) { return place != "requests"; });
}

bool Truth::horizontal() const {
  if (label.world_size < 2 || !label.culprit) return false;
  return label.culprit->rank.has_value() || !label.accepted_ranks.empty();
}

std::string RecordingOf(const Truth& truth) {
  return truth.source == "retimed" ? truth.origin : std::string();
}

base::Result<Truth> ReadTruth(const std::string& folder) {
  Truth truth;
  truth.folder = folder;
  const std::string path = (std::filesystem::path(folder) / "label.json").string();
  std::vector<std::string> problems;
  auto label = inject::ReadLabel(path, problems);
  if (!label) return label.error();
  if (!problems.empty()) {
    return base::Error{base::Code::kBadFormat, problems.front() + "; \"teller lab check\" tells all that is wrong",
                       path};
  }
  truth.label = std::move(*label);
  auto object = ReadJsonObject(path);
  if (!object) return object.error();
  truth.source = Text(*object, "source");
  if (truth.source.empty()) truth.source = "real";
  // A run that cases were made from is known by its folder's name; a simulated case is a run of its own.
  truth.origin = truth.source == "simulated" ? folder : std::filesystem::path(folder).filename().string();
  if (const Json* params = Find(*object, "params"); params != nullptr && params->is_object()) {
    const std::string run = Text(*params, "run");
    if (!run.empty()) truth.origin = run;
  }
  if (truth.label.stack.empty()) truth.label.stack = "not told";
  truth.magnitude = truth.label.is_fault ? MagnitudeOf(*object) : "controls";
  for (const char* key : {"accept_operators"}) {
    const Json* list = Find(*object, key);
    if (list == nullptr || !list->is_array()) continue;
    for (const Json& name : *list) {
      if (name.is_string()) truth.accepted_ops.push_back(name.get<std::string>());
    }
  }
  if (truth.label.culprit) {
    for (const std::string& name : {truth.label.culprit->op, truth.label.culprit->module}) {
      if (!name.empty()) truth.accepted_ops.push_back(name);
    }
  }
  ReadSteps(*object, truth);
  truth.ignored = Ordinals(*object, "ignore_steps");
  return truth;
}

std::vector<StepTruth> JudgeSteps(const Truth& truth, const std::vector<ReadStep>& steps) {
  const bool told = truth.steps_told && truth.steps_shown();
  std::vector<StepTruth> out(steps.size(), told ? StepTruth::kHealthy : StepTruth::kIgnored);
  if (!told) return out;
  const auto has = [](const std::vector<uint32_t>& list, uint32_t index) {
    return std::find(list.begin(), list.end(), index) != list.end();
  };
  for (size_t s = 0; s < steps.size(); ++s) {
    const ReadStep& step = steps[s];
    const base::Nanos begin = step.begin - std::max<base::Nanos>(step.gap, 0);
    bool abnormal = has(truth.abnormal_indices, step.index);
    for (const auto& times : truth.abnormal) {
      // Where the label has the times of every rank, the rank's own; else any of them.
      const bool own = step.rank && *step.rank >= 0 && static_cast<size_t>(*step.rank) < times.size() &&
                       times.size() == static_cast<size_t>(truth.label.world_size);
      for (size_t r = 0; r < times.size(); ++r) {
        if (own && r != static_cast<size_t>(*step.rank)) continue;
        abnormal |= Overlap(times[r], step.begin, step.end);
      }
    }
    if (abnormal) out[s] = StepTruth::kAbnormal;
    const bool unfinished = std::any_of(truth.unfinished.begin(), truth.unfinished.end(),
                                        [&](const Interval& i) { return step.end > i.begin; });
    const bool window = truth.label.window && step.end > truth.label.window->begin && begin < truth.label.window->end;
    // A step touched by the fault that the label does not call abnormal is neither.
    if (!abnormal &&
        (unfinished || has(truth.ignored, step.index) || step.observer || (truth.label.is_fault && window)))
      out[s] = StepTruth::kIgnored;
  }
  return out;
}

std::string EffectOf(const std::vector<ReadStep>& steps, const std::vector<StepTruth>& verdicts) {
  const auto median = [](std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
  };
  const auto time = [](const ReadStep& step) {
    return std::max(1.0, static_cast<double>(step.end - step.begin + std::max<base::Nanos>(step.gap, 0)));
  };
  std::map<std::pair<std::string, std::optional<int64_t>>, std::vector<double>> healthy;
  for (size_t s = 0; s < steps.size(); ++s) {
    if (verdicts[s] == StepTruth::kHealthy) healthy[{steps[s].kind, steps[s].rank}].push_back(time(steps[s]));
  }
  std::vector<double> factors;
  for (size_t s = 0; s < steps.size(); ++s) {
    const auto it = healthy.find({steps[s].kind, steps[s].rank});
    if (verdicts[s] == StepTruth::kAbnormal && it != healthy.end())
      factors.push_back(time(steps[s]) / median(it->second));
  }
  if (factors.empty()) return "not told";
  const double factor = median(factors);
  return factor < 1.1 ? "below x1.1" : factor < 1.5 ? "x1.1-1.5" : factor < 3 ? "x1.5-3" : "x3 and more";
}

}  // namespace teller::score
