#include "inject/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

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

std::string LabelPath(const std::string& folder) {
  return (fs::path(folder) / "label.json").string();
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

/// `told`: what is wrong with the label; `lines`: with the files, each with its name.
void CheckInputs(const std::string& folder, const Label& label, unsigned threads, std::vector<std::string>& told,
                 std::vector<std::string>& lines) {
  for (const std::string& place : label.visible_in.value_or(std::vector<std::string>())) {
    if (!HasPlace(folder, place))
      told.push_back(fmt::format("visible in \"{}\", but the file for it is missing", place));
  }
  engine::Options options;
  options.threads = threads;
  std::error_code error;
  std::vector<std::string> inputs;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    if (!IsTruth(it->path().filename().string())) inputs.push_back(it->path().string());
  }
  if (error) return lines.push_back(folder + ": cannot be listed: " + error.message());
  std::sort(inputs.begin(), inputs.end());
  if (inputs.empty()) return lines.push_back(folder + ": there is no input beside the label");
  options.inputs.paths = inputs;
  const auto run = engine::Open(options);
  if (!run) {
    const base::Error& why = run.error();
    return lines.push_back(Exists(why.path) ? why.Text() : folder + ": " + why.Text());
  }
  CheckLine(run.value(), label, told);
  if (!label.window) return;
  const Interval hull = Hull(run.value());
  if (hull.begin > hull.end) return told.push_back("no input has a time, so the window cannot be in the run");
  if (label.window->begin >= hull.begin && label.window->end <= hull.end) return;
  const double before = static_cast<double>(hull.begin - label.window->begin) / 1e9;
  const double after = static_cast<double>(label.window->end - hull.end) / 1e9;
  told.push_back(fmt::format(
      "the window lies outside the run: it begins {:.3f} s before the first input and ends {:.3f} s after the last",
      std::max(0.0, before), std::max(0.0, after)));
}

/// What is being written, or was left half written by a run that was killed.
bool IsDraft(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(".") || name.ends_with(".part");
}

/// Adds the cases below one folder.
base::Status FindBelow(const std::string& root, std::vector<std::string>& cases) {
  std::error_code error;
  if (!fs::is_directory(root, error)) return base::Error{base::Code::kNotFound, "no such folder", root};
  if (Exists(fs::path(root) / "label.json")) cases.push_back(root);
  auto it = fs::recursive_directory_iterator(root, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code odd;
    if (it->is_directory(odd) && IsDraft(it->path())) it.disable_recursion_pending();
    if (it->path().filename() == "label.json" && it.depth() > 0) cases.push_back(it->path().parent_path().string());
  }
  // Cases that nobody looked at must not pass as checked.
  if (error) return base::Error{base::Code::kUnreadable, "cannot be listed as a whole: " + error.message(), root};
  return {};
}

}  // namespace

base::Result<std::vector<std::string>> FindCases(const std::vector<std::string>& roots) {
  std::vector<std::string> all;
  std::set<fs::path> seen;
  for (const std::string& root : roots) {
    std::vector<std::string> cases;
    TELLER_TRY(FindBelow(root, cases));
    if (cases.empty())
      return base::Error{base::Code::kNotFound, "no case here: nothing below holds a label.json", root};
    std::sort(cases.begin(), cases.end());
    for (std::string& folder : cases) {
      std::error_code error;
      fs::path whole = fs::canonical(folder, error);
      if (seen.insert(error ? fs::path(folder) : std::move(whole)).second) all.push_back(std::move(folder));
    }
  }
  return all;
}

std::vector<std::string> CheckCase(const std::string& folder, unsigned threads) {
  std::vector<std::string> told;
  std::vector<std::string> lines;
  const auto label = ReadLabel(LabelPath(folder), told);
  if (!label) return {label.error().Text()};
  CheckInputs(folder, *label, threads, told, lines);
  for (std::string& problem : told) problem = LabelPath(folder) + ": " + problem;
  told.insert(told.end(), lines.begin(), lines.end());
  return told;
}

}  // namespace teller::inject
