#include "cli/options.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <sstream>

#include "report/version.hpp"

namespace teller::cli {

namespace {

constexpr const char* kAbout =
    "TELLER finds the root cause of slow, stuck or failing LLM inference in trace files and logs.";
constexpr const char* kExitCodes =
    "Exit status: 0 done, 1 a finding and --fail-on-finding was given, 2 could not do it, 3 done but some input was "
    "lost or wrong.";

struct All {
  CommonOptions common;
  DiagnoseOptions diagnose;
  InspectOptions inspect;
  TreeOptions tree;
  LogsOptions logs;
  RequestsOptions requests;
  RequestOptions request;
  WhatIfOptions what_if;
  ExportOptions exported;
  LabRetimeOptions retime;
  LabScoreOptions score;
  TpeTrainOptions train;
  TpeEncodeOptions encode;
  TpeDecodeOptions decode;
  TpeStatsOptions stats;
  TpeDumpOptions dump;
  TpeSweepOptions sweep;
  LabSimulateOptions simulate;
};

/// What is wrong with a whole number that has to be from `low` to `high`; empty when nothing is. The library's own
/// conversion takes "-1" for the largest number and "010" for 8.
std::string WholeProblem(const std::string& text, uint64_t low, uint64_t high) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const bool plain = text == "0" || (!text.empty() && text.front() != '0');
  if (plain && error == std::errc() && rest == end && value >= low && value <= high) return {};
  return "this is a whole number from " + std::to_string(low) + " to " + std::to_string(high) + ", not \"" + text +
         "\"";
}

/// A decimal number. The library's own conversion also takes 0x1, +1 and 1_0.
bool ReadDecimal(const std::string& text, double& value) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end;
}

CLI::Validator Whole(uint64_t low, uint64_t high) {
  return {[=](std::string& text) { return WholeProblem(text, low, high); }, ""};
}

constexpr uint64_t kMostThreads = 1024;
constexpr uint64_t kMostStep = UINT32_MAX;
constexpr uint64_t kMostRank = INT32_MAX;
constexpr uint64_t kMostSeed = INT64_MAX;  // labels hold signed numbers

void AddCommon(CLI::App& app, CommonOptions& common, const char* what) {
  app.add_option("paths", common.paths, what)->type_name("PATH");
  app.add_option("--logs", common.logs, "Read this file as a log whatever it looks like (repeatable)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--graphs", common.graphs, "Take modules of replayed graphs from this learned file (repeatable)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("-o,--output", common.output, "Write here instead of standard output")->type_name("FILE");
  app.add_option("--threads", common.threads, "Worker threads; 0 = one per core")
      ->type_name("N")
      ->check(Whole(0, kMostThreads));
  app.add_flag("--no-color", common.no_color, "No colour, also on a terminal (so does NO_COLOR)");
  app.add_flag("-q,--quiet", common.quiet, "No progress and no remarks on standard error");
  app.add_flag("--all", common.all, "Show everything instead of the most important");
  app.footer(kExitCodes);
}

/// What is wrong with a probability of false alarms; empty when nothing is.
std::string FalseAlarmsProblem(const std::string& text) {
  double value = 0;
  // Written so that "nan" fails as well.
  if (ReadDecimal(text, value) && value > 0 && value <= 0.5) return {};
  return "a probability is more than 0 and at most 0.5, not \"" + text + "\"";
}

constexpr uint32_t kMostMerges = 1U << 22;

void AddVocabulary(CLI::App& app, std::string& path) {
  app.add_option("--vocab", path, "Vocabulary file; without it the one that is built in")->type_name("FILE");
}

/// Trace Pair Encoding: vocabularies and tokens.
void AddTpe(CLI::App& app, All& all) {
  CLI::App* tpe = app.add_subcommand("tpe", "Trace Pair Encoding: steps as short token sequences, without loss");
  tpe->require_subcommand(1);
  tpe->footer(kExitCodes);

  CLI::App* train = tpe->add_subcommand("train", "Learn a vocabulary from runs, whatever the engine");
  AddCommon(*train, all.common, "Runs: each a directory, a file or an archive");
  train->add_option("--vocab", all.train.merges, "Merges to learn, on top of the names; with --extend: new ones")
      ->type_name("N")
      ->check(Whole(0, kMostMerges));
  train->add_option("--extend", all.train.extend, "Vocabulary to add to; its ids stay")->type_name("FILE");

  CLI::App* encode = tpe->add_subcommand("encode", "Print the steps of a run as tokens");
  AddCommon(*encode, all.common, "Run directory, trace files or patterns");
  AddVocabulary(*encode, all.encode.vocabulary);
  encode->add_option("--step", all.encode.step, "Only the step with this index, token by token")
      ->type_name("N")
      ->check(Whole(0, kMostStep));
  encode->add_option("--rank", all.encode.rank, "Only this rank")->type_name("R")->check(Whole(0, kMostRank));
  encode->add_flag("--findings", all.encode.findings,
                   "Diagnose the run too, and say which tokens hold what proves the findings");
  encode->add_flag("--json", all.encode.json, "Print JSON, for decode and for programs");

  CLI::App* decode = tpe->add_subcommand("decode", "Print the trees that tokens stand for");
  AddCommon(*decode, all.common, "What encode --json wrote; - is standard input");
  AddVocabulary(*decode, all.decode.vocabulary);
  decode->add_flag("--json", all.decode.json, "Print JSON");

  CLI::App* stats = tpe->add_subcommand("stats", "Say what a vocabulary makes of runs, engine by engine");
  AddCommon(*stats, all.common, "Runs: each a directory, a file or an archive");
  AddVocabulary(*stats, all.stats.vocabulary);
  stats->add_flag("--json", all.stats.json, "Print JSON");

  CLI::App* dump = tpe->add_subcommand("dump", "Print a vocabulary as JSON: every entry with its class, name or merge");
  dump->add_option("-o,--output", all.common.output, "Write here instead of standard output")->type_name("FILE");
  AddVocabulary(*dump, all.dump.vocabulary);
  dump->footer(kExitCodes);

  CLI::App* sweep = tpe->add_subcommand(
      "sweep", "Compare sizes of vocabularies and other methods on steps that were not learned from");
  AddCommon(*sweep, all.common, "Runs to learn from; without --test some of them are kept for the test");
  sweep->add_option("--vocab", all.sweep.merges, "Numbers of merges, with commas")
      ->type_name("N,N..")
      ->delimiter(',')
      ->allow_extra_args(false)  // what follows is a run
      ->check(Whole(0, kMostMerges));
  sweep->add_option("--test", all.sweep.test, "Runs for the test")->type_name("PATH")->expected(1, -1);
  sweep->add_flag("--json", all.sweep.json, "Print JSON");
}

void AddCommands(CLI::App& app, All& all) {
  CLI::App* diagnose =
      app.add_subcommand("diagnose", "Say which step is abnormal, who caused it, why, and what to do first");
  AddCommon(*diagnose, all.common, "Run directory, trace files, logs or patterns");
  diagnose->add_option("-f,--format", all.diagnose.format, "text, json or html")
      ->check(CLI::IsMember({"text", "json", "html"}))
      ->type_name("FORMAT");
  diagnose->add_option("--false-alarms", all.diagnose.false_alarms, "Accepted probability of a false alarm in a run")
      ->check(CLI::Validator(FalseAlarmsProblem, ""))
      ->type_name("P");
  diagnose->add_flag("--fail-on-finding", all.diagnose.fail_on_finding, "Exit with 1 when something is abnormal");

  CLI::App* inspect = app.add_subcommand("inspect", "Say what is in the files");
  AddCommon(*inspect, all.common, "Trace files, logs, directories or patterns");
  inspect->add_flag("--json", all.inspect.json, "Print JSON");

  CLI::App* tree = app.add_subcommand("tree", "Print the steps and the call tree, from Python to kernels");
  AddCommon(*tree, all.common, "Trace files, directories or patterns");
  tree->add_option("--step", all.tree.step, "Only the step with this index")
      ->type_name("N")
      ->check(Whole(0, kMostStep));
  tree->add_option("--rank", all.tree.rank, "Only this rank")->type_name("R")->check(Whole(0, kMostRank));
  tree->add_option("--depth", all.tree.depth, "Levels to show; 0 = all")->type_name("D")->check(Whole(0, UINT32_MAX));
  tree->add_flag("--stats", all.tree.stats, "Only counts, wall time of each stage and peak memory");

  CLI::App* logs = app.add_subcommand("logs", "Print the records, templates and statistics of logs");
  AddCommon(*logs, all.common, "Logs, directories or patterns");
  logs->add_flag("--json", all.logs.json, "Print JSON");

  CLI::App* requests =
      app.add_subcommand("requests", "List the requests: latencies with percentiles, and why the slowest were slow");
  AddCommon(*requests, all.common, "Run directory, trace files, spans, logs or patterns");
  requests->add_flag("--json", all.requests.json, "Print JSON");

  CLI::App* request =
      app.add_subcommand("request", "Print the tree of one request: queue, steps with its share, output");
  request->add_option("ID", all.request.id, "Its id, or a part of it that no other has")->required()->type_name("");
  AddCommon(*request, all.common, "Run directory, trace files, spans, logs or patterns");
  request->add_flag("--json", all.request.json, "Print JSON");

  CLI::App* what_if =
      app.add_subcommand("whatif", "Say how long a step would have taken with an operator at another duration");
  AddCommon(*what_if, all.common, "Run directory, trace files or patterns");
  what_if->add_option("--step", all.what_if.step, "Index of the step")
      ->required()
      ->type_name("N")
      ->check(Whole(0, kMostStep));
  what_if->add_option("--op", all.what_if.op, "Its name, or a part that no other name in the step has")
      ->required()
      ->type_name("NAME");
  what_if->add_option("--rank", all.what_if.rank, "Whose; by default the rank where it takes longest")
      ->type_name("R")
      ->check(Whole(0, kMostRank));
  what_if->add_option("--to", all.what_if.to, "normal (as in the other steps), a factor (0.5x) or a duration (200us)")
      ->type_name("TIME");
  what_if->add_flag("--json", all.what_if.json, "Print JSON");

  CLI::App* exported =
      app.add_subcommand("export", "Write the trace with the findings marked, or features, for other programs");
  AddCommon(*exported, all.common, "Run directory, trace files, logs or patterns");
  exported->add_option("--to", all.exported.to, "perfetto or features (JSON lines: steps, ops, logs)")
      ->check(CLI::IsMember({"perfetto", "features"}))
      ->type_name("FORMAT");

  CLI::App* graphs =
      app.add_subcommand("graphs", "Learn what kernels of CUDA and HIP graphs belong to, for later runs");
  graphs->require_subcommand(1);
  CLI::App* learn = graphs->add_subcommand(
      "learn",
      "Write the launch sequences of captures and eager steps, and those of learned files, as one learned file");
  AddCommon(*learn, all.common, "Run directories, trace files, learned files or patterns");

  AddTpe(app, all);
}

/// The same for a factor by which something takes longer.
std::string ScaleProblem(const std::string& text) {
  double value = 0;
  if (ReadDecimal(text, value) && value >= 1 && value <= 1000) return {};
  return "a scale is from 1 to 1000, not \"" + text + "\"";
}

/// The same for a share or a magnitude.
std::string ShareProblem(const std::string& text) {
  double value = 0;
  if (ReadDecimal(text, value) && value >= 0 && value <= 1) return {};
  return "this is from 0 to 1, not \"" + text + "\"";
}

void AddSimulate(CLI::App& lab, All& all) {
  CLI::App* simulate = lab.add_subcommand("simulate", "Make cases of runs that were simulated, with one fault each");
  LabSimulateOptions& what = all.simulate;
  simulate->add_option("--engine", what.engine, "vllm, sglang or fsdp")
      ->required()
      ->check(CLI::IsMember({"vllm", "sglang", "fsdp"}))
      ->type_name("ENGINE");
  simulate->add_option("--ranks", what.ranks, "1 to 8; of servers also multiples of 8")
      ->check(Whole(1, 4096))
      ->type_name("N");
  simulate->add_option("--pipeline", what.stages, "Stages that share the layers; each has an equal part of the ranks")
      ->check(Whole(1, 6))
      ->type_name("N");
  simulate->add_option("--fault", what.fault, "A kind (lab list), a class, or mix for all in turn")->type_name("FAULT");
  simulate->add_option("--magnitude", what.magnitude, "0 barely visible, 1 fatal; drawn when not given")
      ->check(CLI::Validator(ShareProblem, ""))
      ->type_name("M");
  simulate->add_option("--count", what.count, "How many cases")->check(Whole(1, 1'000'000))->type_name("K");
  simulate->add_option("--steps", what.steps, "Recorded steps of each")->check(Whole(8, 100'000))->type_name("N");
  simulate->add_option("--lost-events", what.lost, "Share of events that the profiler loses")
      ->check(CLI::Validator(ShareProblem, ""))
      ->type_name("P");
  simulate->add_option("--late-lines", what.late, "Share of log lines that arrive late, behind others")
      ->check(CLI::Validator(ShareProblem, ""))
      ->type_name("P");
  simulate->add_option("--seed", what.seed, "All else follows from it")->type_name("N")->check(Whole(0, kMostSeed));
  simulate->add_option("-o,--output", all.common.output, "Folder for the cases; must not exist")->type_name("FOLDER");
  simulate->add_option("--threads", all.common.threads, "Worker threads; 0 = one per core")
      ->check(Whole(0, kMostThreads))
      ->type_name("N");
  simulate->add_flag("-q,--quiet", all.common.quiet, "No remarks on standard error");
}

void AddScore(CLI::App& lab, All& all) {
  CLI::App* score =
      lab.add_subcommand("score", "Say how good answers to labelled cases are; -o names the folder for the results");
  AddCommon(*score, all.common, "Folders with cases in them");
  score
      ->add_option("--method", all.score.methods,
                   "teller, a baseline, or NAME=COMMAND; several with commas or repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  score
      ->add_option("--split", all.score.split,
                   "none, seed:SHARE, folds:K, runs:K, leave-class, leave-stack or sim-real")
      ->type_name("SPLIT");
  score->add_option("--seed", all.score.seed, "Of names, splits and intervals")
      ->type_name("N")
      ->check(Whole(0, kMostSeed));
  score->add_option("--resamples", all.score.resamples, "Redrawn samples for the intervals")
      ->check(Whole(0, 100'000))
      ->type_name("N");
  score->add_option("--timeout", all.score.timeout, "Seconds for one case")->check(Whole(1, 86'400))->type_name("S");
  score->add_flag("--shuffle-labels", all.score.shuffle_labels,
                  "Tell methods each other's truth to learn from: what is left is a leak");
  score->add_flag(
      "--retest", all.score.retest,
      "Test every verdict about a fault by re-timing: is the step normal with the accused at its normal time");
  score->add_flag("--keep-work", all.score.keep_work, "Keep copies, features and tasks beside the results");
  score
      ->add_option("--reads", all.score.reads,
                   "Keep what is read of the cases here; later runs of baselines on them take it")
      ->type_name("FOLDER");
}

void AddLab(CLI::App& app, All& all) {
  CLI::App* lab = app.add_subcommand("lab", "Fault laboratory: labelled cases");
  lab->footer("Other commands (setup, run, ...) are those of the laboratory's part in Python: teller lab help");
  lab->require_subcommand(1);
  CLI::App* list = lab->add_subcommand("list", "Say which faults can be made");
  list->add_option("-o,--output", all.common.output, "Write here instead of standard output")->type_name("FILE");

  CLI::App* check = lab->add_subcommand("check", "Check labelled cases: form, files, times; one line a problem");
  AddCommon(*check, all.common, "Folders with cases in them");

  CLI::App* retime =
      lab->add_subcommand("retime", "Make a case of a recorded run, re-timed as if a fault had been there");
  AddCommon(*retime, all.common, "Run directory or trace file; -o names the folder for the case");
  retime->add_option("--fault", all.retime.fault, "Which (lab list)")->required()->type_name("FAULT");
  retime->add_option("--rank", all.retime.rank, "Whose; by default the seed chooses")
      ->type_name("R")
      ->check(Whole(0, kMostRank));
  retime->add_option("--peer", all.retime.peer, "slow-link: the other end; by default any")
      ->type_name("R")
      ->check(Whole(0, kMostRank));
  retime->add_option("--op", all.retime.op, "slow-operator: its name, or a part that no other has")->type_name("NAME");
  retime->add_option("--scale", all.retime.scale, "How many times longer, from 1 to 1000; 3 when not given")
      ->check(CLI::Validator(ScaleProblem, ""))
      ->type_name("F");
  retime->add_option("--length", all.retime.length, "pause: how long; 250ms when not given")->type_name("TIME");
  retime->add_option("--first-step", all.retime.first_step, "By default the middle third of the steps")
      ->type_name("N")
      ->check(Whole(0, kMostStep));
  retime->add_option("--last-step", all.retime.last_step, "By default as long as the middle third, or the first alone")
      ->type_name("N")
      ->check(Whole(0, kMostStep));
  retime->add_option("--seed", all.retime.seed, "What is not named follows from it")
      ->type_name("N")
      ->check(Whole(0, kMostSeed));
  AddSimulate(*lab, all);
  AddScore(*lab, all);
}

Command Chosen(const CLI::App& app, All& all) {
  Command command{.common = all.common, .what = all.diagnose};
  if (app.got_subcommand("inspect")) command.what = all.inspect;
  if (app.got_subcommand("tree")) command.what = all.tree;
  if (app.got_subcommand("logs")) command.what = all.logs;
  if (app.got_subcommand("requests")) command.what = all.requests;
  if (app.got_subcommand("request")) command.what = all.request;
  if (app.got_subcommand("whatif")) command.what = all.what_if;
  if (app.got_subcommand("export")) command.what = all.exported;
  if (app.got_subcommand("lab")) {
    const CLI::App* lab = app.get_subcommand("lab");
    if (lab->got_subcommand("list")) command.what = LabListOptions();
    if (lab->got_subcommand("check")) command.what = LabCheckOptions();
    if (lab->got_subcommand("retime")) command.what = all.retime;
    if (lab->got_subcommand("simulate")) command.what = all.simulate;
    if (lab->got_subcommand("score")) command.what = all.score;
  }
  if (app.got_subcommand("graphs")) command.what = GraphsLearnOptions{};
  if (app.got_subcommand("tpe")) {
    const CLI::App& tpe = *app.get_subcommand("tpe");
    if (tpe.got_subcommand("train")) command.what = all.train;
    if (tpe.got_subcommand("encode")) command.what = all.encode;
    if (tpe.got_subcommand("decode")) command.what = all.decode;
    if (tpe.got_subcommand("stats")) command.what = all.stats;
    if (tpe.got_subcommand("dump")) command.what = all.dump;
    if (tpe.got_subcommand("sweep")) command.what = all.sweep;
  }
  return command;
}

/// Verbs of `lab` that are not the program's own belong to the laboratory's part in Python, which knows its arguments.
std::optional<LabPythonOptions> HandedOver(int argc, const char* const* argv) {
  if (argc < 3 || std::string_view(argv[1]) != "lab" || argv[2][0] == '-' || argv[2][0] == '\0') return {};
  for (const std::string_view own : {"list", "check", "retime", "simulate", "score"}) {
    if (own == argv[2]) return {};
  }
  return LabPythonOptions{.args = {argv + 2, argv + argc}};
}

/// CLI11 only says that a command is missing, not which word is none.
std::string UnknownWord(const CLI::App& app, int argc, const char* const* argv) {
  const auto chosen = app.get_subcommands();
  const bool complete =
      !chosen.empty() && (chosen.front()->get_name() != "tpe" || !chosen.front()->get_subcommands().empty());
  if (argc < 2 || complete) return {};
  const std::string word = argv[1];
  if (word == "tpe") {
    constexpr const char* kThere = "tpe has train, encode, decode, stats, sweep";
    return argc < 3 ? "no command of tpe named; " + std::string(kThere)
                    : "unknown command \"tpe " + std::string(argv[2]) + "\"; " + kThere;
  }
  if (word.size() > 1 && word.front() == '-') return "unknown option \"" + word + "\"";
  return "unknown command \"" + word +
         "\"; there are diagnose, inspect, tree, logs, requests, request, whatif, graphs, export, lab, tpe";
}

/// CLI11's messages may have several lines.
std::string OneLine(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

Parsed Refused(const std::string& why) {
  return {.command = {}, .text = {}, .error = OneLine(why) + " (--help shows the usage)"};
}

}  // namespace

Parsed ParseArguments(int argc, const char* const* argv) {
  if (auto python = HandedOver(argc, argv))
    return {.command = Command{.common = {}, .what = std::move(*python)}, .text = {}, .error = {}};
  All all;
  CLI::App app(kAbout, "teller");
  app.set_version_flag("--version", std::string("teller ") + report::kVersion);
  app.footer(kExitCodes);
  app.require_subcommand(1);
  AddCommands(app, all);
  AddLab(app, all);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    std::ostringstream out;
    app.exit(asked, out, out);
    return {.command = {}, .text = out.str(), .error = {}};
  } catch (const CLI::ParseError& wrong) {
    const std::string unknown = UnknownWord(app, argc, argv);
    return Refused(unknown.empty() ? wrong.what() : unknown);
  }
  const auto what = Chosen(app, all).what;
  const bool reads = !std::holds_alternative<LabListOptions>(what) &&
                     !std::holds_alternative<LabSimulateOptions>(what) && !std::holds_alternative<TpeDumpOptions>(what);
  if (reads && app.got_subcommand("tpe") && all.common.paths.empty()) return Refused("no input named; give a PATH");
  if (reads && all.common.paths.empty() && all.common.logs.empty())
    return Refused("no input named; give a PATH or --logs FILE");
  return {.command = Chosen(app, all), .text = {}, .error = {}};
}

}  // namespace teller::cli
