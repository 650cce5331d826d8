#include "engine/engine.hpp"

#include <chrono>

#include "align/align.hpp"
#include "align/requests.hpp"
#include "locate/locate.hpp"
#include "tree/build.hpp"
#include "tree/graph_sequence.hpp"

namespace teller::engine {

namespace {

/// Appends the wall time since construction to a list of stages.
class Stage {
 public:
  Stage(Run& run, std::string name) : run_(run), name_(std::move(name)), begin_(std::chrono::steady_clock::now()) {}
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage() {
    const auto ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin_).count();
    run_.stage_ns.emplace_back(std::move(name_), ns);
  }

 private:
  Run& run_;
  std::string name_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace

base::Result<Run> Open(const Options& options) {
  Run run;
  ingest::RunOptions read;
  read.threads = options.threads;
  read.progress = options.progress;
  {
    const Stage stage(run, "read");
    auto store = ingest::ReadRun(options.inputs, read);
    if (!store) return store.error();
    run.store = std::move(*store);
  }
  {
    const Stage stage(run, "trees");
    run.trees = tree::Build(run.store, options.threads);
  }
  {
    const Stage stage(run, "align");
    align::AlignLogs(run.store, run.trees);
    align::BuildRequests(run.store, run.trees);
  }
  {
    const Stage stage(run, "templates");
    run.templates = logs::MineTemplates(run.store);
  }
  return run;
}

std::vector<trace::LearnedSequence> LearnGraphs(Run& run, uint64_t& left_out) {
  return tree::LearnSequences(run.store, run.trees, left_out);
}

trace::Diagnosis Diagnose(const Run& run, const Options& options) {
  return locate::Locate(run.store, run.trees, {.false_alarms = options.false_alarms});
}

std::vector<std::optional<double>> Restored(const Run& run, const std::vector<locate::Accusation>& accusations) {
  return locate::RestoredShares(run.store, run.trees, accusations);
}

base::Result<retime::Answer> WhatIf(const Run& run, const retime::Question& question) {
  return retime::WhatIf(run.store, run.trees, question);
}

}  // namespace teller::engine
