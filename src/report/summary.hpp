#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"

namespace teller::report {

/// What was read, in numbers.
struct Summary {
  size_t trace_files = 0;  ///< files with spans or collective records
  size_t counter_files = 0;
  size_t graph_files = 0;  ///< of learned sequences
  size_t log_files = 0;
  size_t unused_files = 0;
  std::vector<int> ranks;  ///< order: ascending, each once
  uint64_t spans = 0;
  uint64_t steps = 0;
  uint64_t log_records = 0;
  uint64_t requests = 0;  ///< trees of one request
  uint64_t counter_samples = 0;
  base::Nanos begin = base::kNoTime;
  base::Nanos end = base::kNoTime;
  std::string clock_domain;  ///< "epoch" or "relative"; empty when nothing has a time
};
Summary Summarize(const engine::Run& run);

/// "rank 3 (Worker_TP3)", "EngineCore", "pid 812": what a person calls the process.
std::string ProcessLabel(const trace::Store& store, trace::ProcessRow row);
/// "stream 7", or the thread's name or number.
std::string TrackLabel(const trace::Track& track);

/// Path of a file of the run; empty when there is none.
std::string FilePath(const trace::Store& store, trace::FileRow row);
/// "span:88211" or "line:412"; what the evidence itself says when it says so.
std::string EvidenceRef(const trace::Store& store, const trace::Evidence& evidence);

/// Findings that are shown: all, or the first 20.
size_t ShownFindings(const trace::Diagnosis& diagnosis, bool all);

}  // namespace teller::report
