#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/progress.hpp"
#include "base/status.hpp"
#include "ingest/run.hpp"
#include "locate/accusation.hpp"
#include "logs/template_miner.hpp"
#include "retime/what_if.hpp"
#include "trace/diagnosis.hpp"
#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::engine {

struct Options {
  ingest::RunInputs inputs;
  unsigned threads = 0;        ///< 0 = one per core
  double false_alarms = 0.01;  ///< accepted false-alarm probability of one run
  base::Progress* progress = nullptr;
};

/// A run that was read and whose trees are built.
struct Run {
  trace::Store store;
  trace::Trees trees;
  logs::TemplateTable templates;                          ///< shapes of the log messages
  std::vector<std::pair<std::string, int64_t>> stage_ns;  ///< wall time of each stage, in order
};

/// Reads the inputs, builds trees, aligns logs.
/// Errors: those of ingest::ReadRun.
base::Result<Run> Open(const Options& options);

/// The launch sequences that a run shows (captures, eager steps) or was given as learned, for runs that show replays
/// only. `left_out`: how many a learned file has no room for. Interns names.
std::vector<trace::LearnedSequence> LearnGraphs(Run& run, uint64_t& left_out);

/// Which steps are abnormal, who caused it, and what proves it. Pure: same run, same answer.
trace::Diagnosis Diagnose(const Run& run, const Options& options);

/// What putting the accused at their normal time would do for the job (locate::RestoredShares).
std::vector<std::optional<double>> Restored(const Run& run, const std::vector<locate::Accusation>& accusations);

/// How long a step would have taken with some calls at another duration. Errors: those of retime::WhatIf.
base::Result<retime::Answer> WhatIf(const Run& run, const retime::Question& question);

}  // namespace teller::engine
