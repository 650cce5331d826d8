#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace teller::cli {

/// Options that every command has.
struct CommonOptions {
  std::vector<std::string> paths;   ///< files, directories, patterns
  std::vector<std::string> logs;    ///< files to read as logs whatever they look like
  std::vector<std::string> graphs;  ///< files of learned graphs
  unsigned threads = 0;             ///< 0 = one per core
  std::string output;               ///< empty = stdout
  bool no_color = false;
  bool quiet = false;
  bool all = false;
};

struct DiagnoseOptions {
  std::string format = "text";  ///< text, json, html
  double false_alarms = 0.01;
  bool fail_on_finding = false;
};

struct InspectOptions {
  bool json = false;
};

struct TreeOptions {
  std::optional<uint32_t> step;
  std::optional<int> rank;
  unsigned depth = 0;  ///< 0 = no bound
  bool stats = false;
};

struct LogsOptions {
  bool json = false;
};

struct RequestsOptions {
  bool json = false;
};

struct RequestOptions {
  std::string id;
  bool json = false;
};

struct WhatIfOptions {
  uint32_t step = 0;
  std::optional<int> rank;
  std::string op;
  std::string to = "normal";
  bool json = false;
};

/// Writes what the run shows of captured graphs and eager steps, for replays without them.
struct GraphsLearnOptions {};

struct ExportOptions {
  std::string to = "perfetto";
};

struct LabListOptions {};

/// A verb of the laboratory's part in Python, with its arguments as they are.
struct LabPythonOptions {
  std::vector<std::string> args;
};

struct LabCheckOptions {};

struct LabRetimeOptions {
  std::string fault;
  std::optional<int> rank;
  std::optional<int> peer;
  std::string op;
  std::optional<double> scale;
  std::optional<std::string> length;
  std::optional<uint32_t> first_step;
  std::optional<uint32_t> last_step;
  uint64_t seed = 1;
};

struct LabScoreOptions {
  std::vector<std::string> methods;
  std::string split = "none";
  uint64_t seed = 1;
  unsigned resamples = 200;
  unsigned timeout = 300;  ///< seconds for one case
  bool shuffle_labels = false;
  bool retest = false;
  bool keep_work = false;
  std::string reads;  ///< folder for what was read of the cases
};

struct TpeTrainOptions {
  uint32_t merges = 4096;
  std::string extend;  ///< vocabulary to add to; empty = start anew
};

struct TpeEncodeOptions {
  std::string vocabulary;  ///< file; empty = the one that is built in
  std::optional<uint32_t> step;
  std::optional<int> rank;
  bool findings = false;  ///< diagnose the run and say which tokens hold what proves its findings
  bool json = false;
};

struct TpeDecodeOptions {
  std::string vocabulary;
  bool json = false;
};

struct TpeStatsOptions {
  std::string vocabulary;
  bool json = false;
};

struct TpeDumpOptions {
  std::string vocabulary;
};

struct TpeSweepOptions {
  std::vector<uint32_t> merges = {0, 256, 1024, 4096, 16384, 65536};
  std::vector<std::string> test;
  bool json = false;
};

struct LabSimulateOptions {
  std::string engine;
  int ranks = 1;
  int stages = 1;
  std::string fault = "none";
  std::optional<double> magnitude;
  int count = 1;
  uint64_t seed = 1;
  int steps = 60;
  double lost = 0;
  double late = 0;
};

/// What the user asked for.
struct Command {
  CommonOptions common;
  std::variant<DiagnoseOptions, InspectOptions, TreeOptions, LogsOptions, RequestsOptions, RequestOptions,
               WhatIfOptions, ExportOptions, GraphsLearnOptions, LabListOptions, LabPythonOptions, LabCheckOptions,
               LabRetimeOptions, LabSimulateOptions, LabScoreOptions, TpeTrainOptions, TpeEncodeOptions,
               TpeDecodeOptions, TpeStatsOptions, TpeDumpOptions, TpeSweepOptions>
      what;
};

/// A command, or text that was asked for instead (help, version), or what is wrong with the arguments.
struct Parsed {
  std::optional<Command> command;
  std::string text;   ///< help or version for stdout
  std::string error;  ///< one line
};
Parsed ParseArguments(int argc, const char* const* argv);

}  // namespace teller::cli
