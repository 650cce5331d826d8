#include "inject/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "engine/engine.hpp"
#include "inject/label.hpp"

namespace teller::inject {

namespace fs = std::filesystem;

namespace {

using base::kNoTime;
using base::Nanos;

/// What belongs to a case but is no input of a diagnosis.
bool IsTruth(const std::string& name) {
  return name == "label.json" || name == "evidence.json" || name == "requests.jsonl" || name == "README.md";
}

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool HasFiles(const fs::path& folder) {
  std::error_code error;
  return fs::is_directory(folder, error) && !fs::is_empty(folder, error);
}

/// Whether the input that can show a fault in this place is there.
bool HasPlace(const fs::path& folder, const std::string& place) {
  if (place == "trace") return HasFiles(folder / "traces");
  if (place == "log") return Exists(folder / "server.log") || HasFiles(folder / "logs");
  if (place == "spans") return Exists(folder / "spans.jsonl");
  if (place == "metrics") return Exists(folder / "metrics.txt");
  if (place == "host") return Exists(folder / "host.jsonl") || Exists(folder / "host_cpu.jsonl");
  return Exists(folder / "requests.jsonl");
}

/// The hull of all inputs: spans, log lines, samples, statements about requests.
Interval Hull(const engine::Run& run) {
  Interval hull{INT64_MAX, INT64_MIN};
  const auto widen = [&](Nanos begin, Nanos end) {
    if (begin == kNoTime || end == kNoTime) return;
    hull.begin = std::min(hull.begin, begin);
    hull.end = std::max(hull.end, end);
  };
  const trace::Store& store = run.store;
  for (size_t row = 0; row < store.spans.size(); ++row) widen(store.spans.begin[row], store.spans.end(row));
  for (const trace::LogRecord& log : store.logs) widen(log.at, log.at);
  for (const trace::CounterSample& sample : store.counters) widen(sample.at, sample.at);
  for (const trace::Request& request : run.trees.requests) widen(request.arrival, request.arrival);
  return hull;
}

/// The labelled line has to be in a log, else no answer could name it.
void CheckLine(const engine::Run& run, const Label& label, std::vector<std::string>& problems) {
  if (!label.culprit || label.culprit->log_record.empty()) return;
  const std::string& line = label.culprit->log_record;
  const auto& logs = run.store.logs;
  const auto has = [&](const trace::LogRecord& log) { return log.message.find(line) != std::string::npos; };
  if (std::any_of(logs.begin(), logs.end(), has)) return;
  problems.push_back(fmt::format("no log has the labelled line \"{}\"", line.substr(0, 80)));
}

void CheckInputs(const std::string& folder, const Label& label, unsigned threads, std::vector<std::string>& problems) {
  for (const std::string& place : label.visible_in.value_or(std::vector<std::string>())) {
    if (!HasPlace(folder, place))
      problems.push_back(fmt::format("visible in \"{}\", but the file for it is missing", place));
  }
  engine::Options options;
  options.threads = threads;
  std::error_code error;
  std::vector<std::string> inputs;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!IsTruth(entry.path().filename().string())) inputs.push_back(entry.path().string());
  }
  std::sort(inputs.begin(), inputs.end());
  if (inputs.empty()) return problems.push_back("there is no input beside the label");
  options.inputs.paths = inputs;
  const auto run = engine::Open(options);
  if (!run) return problems.push_back("the inputs cannot be read: " + run.error().message);
  CheckLine(run.value(), label, problems);
  if (!label.window) return;
  const Interval hull = Hull(run.value());
  if (hull.begin > hull.end) return problems.push_back("no input has a time, so the window cannot be in the run");
  if (label.window->begin >= hull.begin && label.window->end <= hull.end) return;
  const double before = static_cast<double>(hull.begin - label.window->begin) / 1e9;
  const double after = static_cast<double>(label.window->end - hull.end) / 1e9;
  problems.push_back(fmt::format(
      "the window lies outside the run: it begins {:.3f} s before the first input and ends {:.3f} s after the last",
      std::max(0.0, before), std::max(0.0, after)));
}

}  // namespace

base::Result<std::vector<std::string>> FindCases(const std::string& root) {
  std::error_code error;
  if (!fs::is_directory(root, error)) return base::Error{base::Code::kNotFound, "no such folder", root};
  std::vector<std::string> cases;
  if (Exists(fs::path(root) / "label.json")) cases.push_back(root);
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto it = fs::recursive_directory_iterator(root, options, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it->path().filename() == "label.json" && it->path().parent_path() != fs::path(root))
      cases.push_back(it->path().parent_path().string());
  }
  std::sort(cases.begin(), cases.end());
  cases.erase(std::unique(cases.begin(), cases.end()), cases.end());
  if (cases.empty()) return base::Error{base::Code::kNotFound, "no case here: nothing below holds a label.json", root};
  return cases;
}

std::vector<std::string> CheckCase(const std::string& folder, unsigned threads) {
  std::vector<std::string> problems;
  const auto label = ReadLabel((fs::path(folder) / "label.json").string(), problems);
  if (!label) {
    problems.push_back("label.json " + label.error().message);
    return problems;
  }
  CheckInputs(folder, *label, threads, problems);
  return problems;
}

}  // namespace teller::inject
