#include "inject/sim/simulate.hpp"

#include <fmt/format.h>

#include <mutex>

#include "base/parallel.hpp"
#include "inject/draft.hpp"
#include "inject/sim/case_run.hpp"

namespace teller::inject::sim {

namespace {

base::Error Usage(std::string text) {
  return {base::Code::kUsage, std::move(text)};
}

/// The kinds that the options ask for; cases take them in turn.
base::Result<std::vector<const KindInfo*>> Wanted(const SimulateOptions& options) {
  if (options.fault != "mix") {
    const auto kind = FindKind(options.fault, options.engine, options.ranks, options.stages);
    if (!kind) return kind.error();
    if (options.magnitude && !HasMagnitude(**kind))
      return Usage(fmt::format("{} is the same at every magnitude; leave --magnitude out", (*kind)->name));
    return std::vector<const KindInfo*>{*kind};
  }
  std::vector<const KindInfo*> kinds;
  for (const KindInfo& kind : Kinds()) {
    if (FindKind(kind.name, options.engine, options.ranks, options.stages)) kinds.push_back(&kind);
  }
  return kinds;
}

/// Ranks have to be enough for the parts of each stage, the stages of each replica and the replicas.
base::Status CheckRanks(const SimulateOptions& options) {
  if (options.stages > 1 && options.engine == Engine::kFsdp)
    return Usage("fsdp has no pipeline: every rank has a part of every layer; leave --pipeline out");
  if (options.ranks % options.stages != 0)
    return Usage(fmt::format("{} ranks make no {} equal stages", options.ranks, options.stages));
  const int of_stage = options.ranks / options.stages;
  if (options.engine == Engine::kFsdp || of_stage <= 8 || of_stage % 8 == 0) return {};
  if (options.stages > 1)
    return Usage(fmt::format(
        "{} ranks of a stage make no whole replicas of 8; name 1 to 8 for each stage, or a multiple of 8", of_stage));
  return Usage(fmt::format("{} ranks make no whole replicas of 8; name 1 to 8, or a multiple of 8", options.ranks));
}

}  // namespace

base::Result<Simulated> Simulate(const SimulateOptions& options, const std::string& folder) {
  const auto kinds = Wanted(options);
  if (!kinds) return kinds.error();
  TELLER_TRY(CheckRanks(options));
  auto draft = Draft::Make(folder);
  if (!draft) return draft.error();
  std::vector<uint64_t> seeds(options.count);
  base::Rng rng(options.seed);
  for (uint64_t& seed : seeds) seed = rng.Next();
  std::mutex mutex;
  Simulated made;
  base::Status failed;
  base::ParallelFor(base::ThreadCount(options.threads), seeds.size(), [&](size_t index) {
    {
      const std::lock_guard lock(mutex);
      if (!failed.ok()) return;
    }
    const std::string name = fmt::format("case-{:05}", index + 1);
    CaseRun run(options, *(*kinds)[index % kinds->size()], seeds[index] >> 1);  // labels hold signed numbers
    base::Status status = run.Make((draft->path() / name).string(), name);
    const std::lock_guard lock(mutex);
    if (!status.ok() && failed.ok()) failed = std::move(status);
    ++made.cases;
    made.trace_bytes += run.trace_bytes();
  });
  if (!failed.ok()) return failed.error();
  TELLER_TRY(draft->Keep());
  return made;
}

}  // namespace teller::inject::sim
