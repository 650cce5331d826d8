#include "inject/label.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace teller::inject {

namespace {

using Json = nlohmann::json;

constexpr uintmax_t kLargest = 4u << 20;
/// Brackets that are open at once, at most; the parser's tree is taken down by recursion.
constexpr int kDeepest = 64;
constexpr std::array<std::string_view, 13> kLayers = {"request",  "scheduler",  "python",  "op",   "cuda_api",
                                                      "kernel",   "collective", "network", "host", "storage",
                                                      "hardware", "process",    "log"};
constexpr std::array<std::string_view, 6> kPlaces = {"trace", "log", "spans", "metrics", "host", "requests"};

template <class List>
bool Has(const List& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// Reads fields and notes what is wrong with them.
class Reader {
 public:
  Reader(const Json& object, std::vector<std::string>& problems) : object_(object), problems_(problems) {}

  Label Read() {
    const std::string schema = Text(object_, "schema", true);
    if (!schema.empty() && schema != "teller.label/1")
      Problem(fmt::format("schema is \"{}\", not \"teller.label/1\"", schema));
    label_.is_fault = Flag("is_fault");
    label_.fault = Class("fault_class");
    label_.accepted = Classes("accept_classes");
    label_.kind = Text(object_, "fault_kind", true);
    label_.stack = Text(object_, "stack", false);
    Text(object_, "version", false);
    label_.world_size = Whole(object_, "world_size", true).value_or(INT64_MAX);  // unknown: no rank is too large
    if (label_.world_size < 1) Problem(fmt::format("world_size is {}; a run has at least one rank", label_.world_size));
    ReadCulprit();
    label_.accepted_ranks = Ranks("accept_ranks");
    label_.victims = Ranks("victims");
    for (const Json& name : List(object_, "accept_operators")) FilledText(name, "accept_operators");
    ReadTimes();
    ReadPlaces();
    for (const char* key : {"abnormal_steps", "ignore_steps", "explained_steps"}) CheckSteps(key);
    return std::move(label_);
  }

 private:
  void Problem(std::string text) { problems_.push_back(std::move(text)); }

  /// The field, or null when it is not there.
  static const Json* Find(const Json& object, const char* key) {
    const auto it = object.find(key);
    return it == object.end() || it->is_null() ? nullptr : &*it;
  }

  std::string Text(const Json& object, const char* key, bool needed) {
    const Json* value = Find(object, key);
    if (value == nullptr) {
      if (needed) Problem(fmt::format("\"{}\" is missing", key));
      return {};
    }
    return FilledText(*value, key);
  }

  /// What does not apply is null or not there: an empty text would be right of anything, or of nothing.
  std::string FilledText(const Json& value, const char* key) {
    if (!value.is_string()) {
      Problem(fmt::format("\"{}\" holds something that is no text", key));
      return {};
    }
    std::string text = value.get<std::string>();
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
      Problem(fmt::format("\"{}\" holds an empty text; leave out what does not apply, or write null", key));
    return text;
  }

  bool Flag(const char* key) {
    const Json* value = Find(object_, key);
    if (value != nullptr && value->is_boolean()) return value->get<bool>();
    Problem(fmt::format("\"{}\" is missing or neither true nor false", key));
    return false;
  }

  std::optional<int64_t> Whole(const Json& object, const char* key, bool needed) {
    const Json* value = Find(object, key);
    if (value == nullptr) {
      if (needed) Problem(fmt::format("\"{}\" is missing", key));
      return {};
    }
    return Number(*value, key);
  }

  std::optional<int64_t> Number(const Json& value, const char* key) {
    const bool fits = value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
    if (fits) return value.get<int64_t>();
    Problem(fmt::format("\"{}\" holds something that is no whole number", key));
    return {};
  }

  std::optional<trace::FaultClass> Known(const Json& value, const char* key) {
    const std::string name = value.is_string() ? value.get<std::string>() : value.dump();
    const auto known = trace::FaultClassFromName(name);
    if (!known) Problem(fmt::format("\"{}\" has the unknown class \"{}\"", key, name.substr(0, 60)));
    return known;
  }

  trace::FaultClass Class(const char* key) {
    const Json* value = Find(object_, key);
    if (value != nullptr) return Known(*value, key).value_or(trace::FaultClass::kUnknown);
    Problem(fmt::format("\"{}\" is missing", key));
    return trace::FaultClass::kUnknown;
  }

  /// The list, or an empty one.
  const Json& List(const Json& object, const char* key) {
    static const Json kEmpty = Json::array();
    const Json* value = Find(object, key);
    if (value == nullptr) return kEmpty;
    if (value->is_array()) return *value;
    Problem(fmt::format("\"{}\" is no list", key));
    return kEmpty;
  }

  std::vector<trace::FaultClass> Classes(const char* key) {
    std::vector<trace::FaultClass> out;
    for (const Json& value : List(object_, key)) {
      if (const auto known = Known(value, key)) out.push_back(*known);
    }
    return out;
  }

  void CheckRank(int64_t rank, const char* key) {
    if (rank >= 0 && rank < label_.world_size) return;
    Problem(fmt::format("\"{}\" names rank {}, but the run has {} ranks, from 0", key, rank, label_.world_size));
  }

  std::vector<int64_t> Ranks(const char* key) {
    std::vector<int64_t> ranks;
    for (const Json& value : List(object_, key)) {
      if (value.is_string()) {  // a process without a rank
        FilledText(value, key);
        continue;
      }
      const auto rank = Number(value, key);
      if (!rank) continue;
      CheckRank(*rank, key);
      ranks.push_back(*rank);
    }
    return ranks;
  }

  void ReadCulprit() {
    const bool control =
        label_.fault == trace::FaultClass::kNotAFault || label_.fault == trace::FaultClass::kObserverEffect;
    if (label_.is_fault && control)
      Problem(fmt::format("is_fault is true, but {} is no fault", trace::Name(label_.fault)));
    if (!label_.is_fault && !control && label_.fault != trace::FaultClass::kUnknown) {
      Problem(fmt::format("is_fault is false, but {} is a fault", trace::Name(label_.fault)));
    }
    const Json* culprit = Find(object_, "culprit");
    if (culprit == nullptr) {
      if (label_.is_fault) Problem("a fault without a culprit");
      return;
    }
    if (!culprit->is_object()) return Problem("\"culprit\" is no object");
    if (!label_.is_fault) Problem("a culprit on a case that is no fault");
    LabelCulprit out;
    out.rank = Whole(*culprit, "rank", false);
    if (out.rank) CheckRank(*out.rank, "culprit");
    out.process = Text(*culprit, "process", false);
    out.layer = Text(*culprit, "layer", true);
    out.op = Text(*culprit, "operator", false);
    out.module = Text(*culprit, "module", false);
    out.function = Text(*culprit, "function", false);
    out.log_record = Text(*culprit, "log_record", false);
    if (!out.layer.empty() && !Has(kLayers, out.layer))
      Problem(fmt::format("the culprit's layer \"{}\" is none of the known ones", out.layer.substr(0, 60)));
    label_.culprit = std::move(out);
  }

  std::optional<Interval> Pair(const Json& value, const char* key) {
    if (!value.is_array() || value.size() != 2) {
      Problem(fmt::format("\"{}\" holds something that is no pair of times", key));
      return {};
    }
    const auto begin = Number(value[0], key);
    const auto end = Number(value[1], key);
    if (!begin || !end) return {};
    if (*begin > *end) Problem(fmt::format("\"{}\" has an interval that ends before it begins", key));
    return Interval{*begin, *end};
  }

  void ReadTimes() {
    const auto begin = Whole(object_, "t_start_ns", label_.is_fault);
    const auto end = Whole(object_, "t_end_ns", label_.is_fault);
    if (begin && end) {
      if (*begin > *end) Problem("the window ends before it begins");
      label_.window = Interval{*begin, *end};
    } else if (begin || end) {
      Problem("the window has only one end");
    }
    for (const Json& value : List(object_, "intervals_ns")) {
      const auto interval = Pair(value, "intervals_ns");
      if (!interval) continue;
      label_.activations.push_back(*interval);
      if (label_.window && (interval->begin < label_.window->begin || interval->end > label_.window->end)) {
        Problem("an activation lies outside the window");
      }
    }
    for (const Json& value : List(object_, "observer_ns")) Pair(value, "observer_ns");
  }

  void ReadPlaces() {
    if (Find(object_, "visible_in") == nullptr) return;
    label_.visible_in.emplace();
    const Json& places = List(object_, "visible_in");
    for (const Json& value : places) {
      const std::string place = value.is_string() ? value.get<std::string>() : value.dump();
      if (!Has(kPlaces, place)) {
        Problem(fmt::format("\"visible_in\" has the unknown place \"{}\"", place.substr(0, 60)));
      } else {
        label_.visible_in->push_back(place);
      }
    }
    if (label_.is_fault && places.empty())
      Problem("\"visible_in\" of a fault has no place; write null where it was not judged");
  }

  /// Numbers of steps, alone or with their times on each rank.
  void CheckSteps(const char* key) {
    for (const Json& step : List(object_, key)) {
      const Json* index = step.is_object() ? Find(step, "index") : &step;
      const bool fits = index != nullptr && index->is_number_unsigned() && index->get<uint64_t>() <= UINT32_MAX;
      if (!fits) return Problem(fmt::format("\"{}\" has a step without a number from 0", key));
      if (!step.is_object()) continue;
      for (const Json& pair : List(step, "ranks")) {
        if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_integer() ||
            !(pair[1].is_number_integer() || pair[1].is_null()))
          return Problem(
              fmt::format("\"{}\" has a step whose \"ranks\" holds something that is no pair of times", key));
      }
    }
  }

  const Json& object_;
  std::vector<std::string>& problems_;
  Label label_;
};

}  // namespace

base::Result<Label> ReadLabel(const std::string& path, std::vector<std::string>& problems) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error == std::errc::no_such_file_or_directory)
    return base::Error{base::Code::kNotFound, "there is no label", path};
  if (error) return base::Error{base::Code::kUnreadable, "cannot be read: " + error.message(), path};
  if (size > kLargest) return base::Error{base::Code::kLimit, "is larger than 4 MiB", path};
  std::ifstream in(path, std::ios::binary);
  if (!in) return base::Error{base::Code::kUnreadable, "cannot be read", path};
  bool deep = false;
  const auto shallow = [&](int depth, Json::parse_event_t, Json&) {
    deep |= depth > kDeepest;
    return depth <= kDeepest;
  };
  const Json object = Json::parse(in, shallow, /*allow_exceptions=*/false);
  if (deep) return base::Error{base::Code::kLimit, "is nested more than 64 deep", path};
  if (!object.is_object()) return base::Error{base::Code::kBadFormat, "is no JSON object", path};
  return Reader(object, problems).Read();
}

}  // namespace teller::inject
