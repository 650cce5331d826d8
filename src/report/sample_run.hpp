#pragma once

#include "engine/engine.hpp"

// A small hand-built run for the tests of this module: two ranks, three steps each, a slow operator on rank 1, one log.
namespace teller::report {

inline constexpr base::Nanos kSampleBase = 1'700'000'000 * base::kSecond;

inline const base::DiagnosticKind kSampleLoss{"trace.truncated", base::Severity::kDataLoss,
                                              "the file ends in the middle of an event"};

class SampleRun {
 public:
  engine::Run run;
  trace::Diagnosis diagnosis;

  /// `op` is the name of the slow operator; tests pass hostile ones.
  explicit SampleRun(std::string op = "aten::mm", std::string line = "rank 0 waits") {
    AddFiles(line);
    for (int rank = 0; rank < 2; ++rank) AddRank(rank, op);
    run.trees.clock_method = "collectives";
    run.trees.clock_error = 1200;
    AddFinding(op);
  }

 private:
  void AddFiles(const std::string& line) {
    trace::Store& store = run.store;
    for (int rank = 0; rank < 2; ++rank) {
      store.files.push_back({.path = "traces/rank" + std::to_string(rank) + ".json.gz",
                             .kind = "kineto",
                             .rank = rank,
                             .bytes = 1000,
                             .records_read = 15,
                             .spans = 15});
    }
    store.files.push_back({.path = "server.log", .kind = "log", .bytes = 40, .records_read = 1, .log_records = 1});
    store.files.push_back({.path = "notes.bin", .kind = "other", .bytes = 9, .note = "neither a trace nor a log"});
    store.categories = {{"user_annotation", trace::SpanKind::kAnnotation},
                        {"cpu_op", trace::SpanKind::kOp},
                        {"cuda_runtime", trace::SpanKind::kRuntime},
                        {"kernel", trace::SpanKind::kKernel},
                        {"python_function", trace::SpanKind::kPython}};
    trace::LogRecord log;
    log.file = base::FileRow(2);
    log.line = 7;
    log.at = kSampleBase + 30 * base::kMilli;
    log.basis = trace::TimeBasis::kStamp;
    log.level = trace::LogLevel::kWarning;
    log.source = trace::LogSource::kVllm;
    log.process = "EngineCore";
    log.message = line;
    log.template_id = 1;
    log.parameters = {{trace::LogParameter::Kind::kInteger, "0"}};
    log.statistics = {{"running", 3}};
    store.logs.push_back(log);
    run.templates.templates = {
        {.id = 1, .text = "rank <int> waits", .level = log.level, .count = 1, .first = trace::LogRow(0)}};
    store.diagnostics.Report(kSampleLoss, base::FileRow(1), "byte 900");
  }

  void Add(trace::TrackRow track, uint8_t category, const std::string& name, base::Nanos begin, base::Nanos duration,
           trace::SpanRow parent) {
    trace::Spans& spans = run.store.spans;
    spans.begin.push_back(kSampleBase + begin);
    spans.duration.push_back(duration);
    spans.name.push_back(run.store.strings.Intern(name));
    spans.track.push_back(track);
    spans.category.push_back(category);
    spans.parent.push_back(parent);
    spans.depth.push_back(parent.valid() ? static_cast<uint16_t>(spans.depth[parent.value()] + 1) : uint16_t{0});
    ++run.store.tracks[track.value()].span_count;
  }
  trace::SpanRow Last() const { return trace::SpanRow(static_cast<uint32_t>(run.store.spans.size() - 1)); }

  void AddRank(int rank, const std::string& op) {
    trace::Store& store = run.store;
    const trace::ProcessRow process(static_cast<uint32_t>(rank));
    store.processes.push_back({.file = base::FileRow(static_cast<uint32_t>(rank)),
                               .pid = std::to_string(100 + rank),
                               .name = "Worker_TP" + std::to_string(rank),
                               .rank = rank,
                               .world_size = 2,
                               .engine = "vllm"});
    const trace::TrackRow host(static_cast<uint32_t>(store.tracks.size()));
    const uint32_t first = static_cast<uint32_t>(store.spans.size());
    store.tracks.push_back({.process = process, .tid = "1", .name = "main", .first_span = first});
    std::vector<trace::SpanRow> launches;
    for (uint32_t i = 0; i < 3; ++i) {
      const base::Nanos at = i * 20 * base::kMilli;
      const bool slow = rank == 1 && i == 1;
      const base::Nanos length = slow ? 18 * base::kMilli : 5 * base::kMilli;
      Add(host, 0, "step " + std::to_string(i), at, length, {});
      const trace::SpanRow step = Last();
      run.trees.steps.push_back({.process = process,
                                 .rank = rank,
                                 .index = i,
                                 .span = step,
                                 .name = "step " + std::to_string(i),
                                 .begin = kSampleBase + at,
                                 .end = kSampleBase + at + length,
                                 .gap_before = i == 0 ? -1 : 2 * base::kMilli,
                                 .kind = trace::StepKind::kDecode,
                                 .batch = 8});
      Add(host, 4, "model.py(10): forward", at + 100, length - 200, step);
      Add(host, 1, op, at + 1000, length - 2000, Last());
      Add(host, 2, "cudaLaunchKernel", at + 2000, 5000, Last());
      launches.push_back(Last());
    }
    store.tracks.push_back({.process = process,
                            .tid = "7",
                            .is_stream = true,
                            .stream = 7,
                            .first_span = static_cast<uint32_t>(store.spans.size())});
    for (uint32_t i = 0; i < 3; ++i) {
      Add(trace::TrackRow(host.value() + 1), 3, "gemm_kernel", i * 20 * base::kMilli + 9000, base::kMilli, {});
      run.trees.launches.push_back({launches[i], Last()});
    }
  }

  void AddFinding(const std::string& op) {
    const trace::Step& step = run.trees.steps[4];
    trace::Finding finding;
    finding.id = "F1";
    finding.score = 0.97;
    finding.false_alarm_probability = 0.0004;
    finding.fault = trace::FaultClass::kKernelRegression;
    finding.alternatives = {{trace::FaultClass::kCpuStarved, 0.2}};
    finding.view = "vertical";
    finding.culprit = {.rank = 1, .process = "Worker_TP1", .thread = "main", .layer = "op", .op = op};
    finding.onset = step.begin;
    finding.end = step.end;
    finding.steps = {{.row = trace::StepRow(4),
                      .rank = 1,
                      .index = 1,
                      .name = step.name,
                      .begin = step.begin,
                      .end = step.end,
                      .score = 0.99}};
    finding.victims = {{0, "waits 13 ms"}};
    finding.cost = 13 * base::kMilli;
    finding.step_without = 5 * base::kMilli;
    finding.step_observed = 18 * base::kMilli;
    // Rank 1's spans begin after rank 0's 15; its second step has four.
    finding.evidence = {{.id = "E1",
                         .kind = trace::Evidence::Kind::kSpan,
                         .file = base::FileRow(1),
                         .ref = "span:21",
                         .span = trace::SpanRow(21),
                         .at = step.begin,
                         .text = op + " takes 18.0 ms instead of 5.00 ms"},
                        {.id = "E2",
                         .kind = trace::Evidence::Kind::kLog,
                         .file = base::FileRow(2),
                         .ref = "line:7",
                         .log = trace::LogRow(0),
                         .at = kSampleBase + 30 * base::kMilli,
                         .text = run.store.logs[0].message}};
    finding.explanation = "The operator is slow on rank 1 [E1] and rank 0 waits for it [E2].";
    diagnosis.status = trace::VerdictStatus::kAbnormal;
    diagnosis.confidence = 0.97;
    diagnosis.summary = "Rank 1 spends 13 ms too long in one operator of step 1.";
    diagnosis.findings = {finding};
    diagnosis.notes = {{"the first step warms up", kSampleBase, kSampleBase + 5 * base::kMilli}};
  }
};

}  // namespace teller::report
