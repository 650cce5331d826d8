#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/fault_class.hpp"
#include "trace/types.hpp"

namespace teller::trace {

/// One thing that proves a finding, addressable in the input.
struct Evidence {
  enum class Kind : uint8_t { kSpan, kLog, kCollective, kStatistic };
  std::string id;  ///< "E1", unique in the run; the explanation refers to it as [E1]
  Kind kind = Kind::kSpan;
  FileRow file;
  std::string ref;  ///< "span:88211", "line:412"
  SpanRow span;     ///< where kind is span
  LogRow log;       ///< where kind is log
  Nanos at = kNoTime;
  std::string text;
};
std::string_view Name(Evidence::Kind kind);

/// Who or what caused it. Empty members do not apply.
struct Culprit {
  std::optional<int> rank;
  std::string process;
  std::string thread;
  std::string layer;       ///< request, scheduler, python, op, cuda_api, kernel, collective, network, host, storage,
                           ///< hardware, process, log
  std::string op;          ///< as in the trace
  std::string module;      ///< layer path where known
  std::string log_record;  ///< the line that names the cause
};

struct Alternative {
  FaultClass fault = FaultClass::kUnknown;
  double p = 0;
};

struct AbnormalStep {
  StepRow row;
  std::optional<int> rank;
  uint32_t index = 0;
  std::string name;
  Nanos begin = kNoTime;
  Nanos end = kNoTime;
  double score = 0;
};

struct Victim {
  std::optional<int> rank;
  std::string what;
};

/// One root cause.
struct Finding {
  std::string id;                      ///< "F1"
  double score = 0;                    ///< 0..1
  double false_alarm_probability = 1;  ///< per run
  FaultClass fault = FaultClass::kUnknown;
  std::vector<Alternative> alternatives;  ///< order: by p, largest first
  std::string view;                       ///< "horizontal" or "vertical"
  bool compares_ranks = false;            ///< rests on how ranks differ, so all of them must have been seen
  Culprit culprit;
  Nanos onset = kNoTime;
  Nanos end = kNoTime;
  std::vector<AbnormalStep> steps;  ///< order: by score, largest first
  std::vector<Victim> victims;
  Nanos cost = 0;                     ///< time lost in all steps
  std::optional<Nanos> step_without;  ///< a typical abnormal step's duration without the cause
  std::optional<Nanos> step_observed;
  /// Of the time lost, the share that the job would save if only the cause were repaired, by re-timing the run.
  std::optional<double> saved_share;
  std::vector<Evidence> evidence;
  std::string explanation;  ///< one paragraph with [E1] references
};

/// Someone who differs most from what is usual, and of whom nothing is proved: an answer for those who know that
/// something was slow. Never a finding.
struct Suspect {
  Culprit culprit;
  FaultClass fault = FaultClass::kUnknown;        ///< what it would be
  std::string view;                               ///< "horizontal" or "vertical"
  std::optional<double> false_alarm_probability;  ///< per run; none where it merely stands out most
  Nanos lost = 0;                                 ///< time beyond what is normal, in all its steps
  std::vector<AbnormalStep> steps;                ///< the worst few, worst first
  std::string text;                               ///< one line
};

/// Look-alike or observer effect that was seen and is no fault.
struct Note {
  std::string text;
  Nanos begin = kNoTime;
  Nanos end = kNoTime;
  bool observer = false;  ///< a profiler held up serving
};

/// An input that was not given, and what the answer lacks without it.
struct NotGiven {
  std::string input;  ///< "request spans"
  std::string cost;   ///< one sentence
};

enum class VerdictStatus : uint8_t { kNormal, kAbnormal, kCannotTell };
std::string_view Name(VerdictStatus status);

/// The answer.
struct Diagnosis {
  VerdictStatus status = VerdictStatus::kCannotTell;
  double confidence = 0;
  std::string summary;
  std::vector<std::string> missing;  ///< what to capture next when it cannot be told
  std::vector<Finding> findings;     ///< order: by score; sources before their downstream damage
  std::vector<Suspect> suspects;     ///< order: most suspect first; nobody whom a finding names
  std::vector<Note> notes;
  std::vector<NotGiven> not_given;
};

}  // namespace teller::trace
