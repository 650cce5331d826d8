// Reads a run, builds the trees' lower half, and prints wall time of each stage, counts and peak memory.

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "ingest/run.hpp"
#include "tree/launch.hpp"
#include "tree/nesting.hpp"

namespace {

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv) {
  teller::ingest::RunInputs inputs;
  teller::ingest::RunOptions options;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
      options.threads = static_cast<unsigned>(std::atoi(argv[++i]));
    } else if (std::strcmp(argv[i], "-v") == 0) {
      verbose = true;
    } else {
      inputs.paths.emplace_back(argv[i]);
    }
  }
  const double start = Seconds();
  auto read = teller::ingest::ReadRun(inputs, options);
  if (!read) {
    std::fprintf(stderr, "%s\n", read.error().Text().c_str());
    return 2;
  }
  auto& store = *read;
  const double ingested = Seconds();
  teller::tree::Nest(store, options.threads);
  const double nested = Seconds();
  teller::trace::Trees trees;
  teller::tree::LinkLaunches(store, trees);
  const double linked = Seconds();
  uint64_t bytes = 0;
  for (const auto& file : store.files) bytes += file.bytes;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "bytes %llu spans %zu strings %zu read %.3f nest %.3f link %.3f total %.3f GB/s %.3f rss_mb %.1f rss_ratio "
      "%.3f\n",
      static_cast<unsigned long long>(bytes), store.spans.size(), store.strings.size(), ingested - start,
      nested - ingested, linked - nested, linked - start, static_cast<double>(bytes) / 1e9 / (linked - start),
      static_cast<double>(usage.ru_maxrss) / 1024,
      static_cast<double>(usage.ru_maxrss) * 1024 / static_cast<double>(bytes));
  std::printf("gpu_work %llu linked %llu unlaunched %llu\n", static_cast<unsigned long long>(trees.gpu_work),
              static_cast<unsigned long long>(trees.gpu_work_linked),
              static_cast<unsigned long long>(trees.gpu_work_unlaunched));
  if (!verbose) return 0;
  for (const auto& file : store.files) {
    std::printf("%s kind %s rank %d read %llu = %llu+%llu+%llu+%llu+%llu+%llu+%llu %s\n", file.path.c_str(),
                file.kind.c_str(), file.rank.value_or(-1), static_cast<unsigned long long>(file.records_read),
                static_cast<unsigned long long>(file.spans), static_cast<unsigned long long>(file.instants),
                static_cast<unsigned long long>(file.counters), static_cast<unsigned long long>(file.flows),
                static_cast<unsigned long long>(file.metadata), static_cast<unsigned long long>(file.repaired_away),
                static_cast<unsigned long long>(file.dropped), file.note.c_str());
  }
  for (const auto& p : store.processes) {
    std::printf("process %s pid %s name '%s' rank %d world %d engine %s host %s\n",
                store.files[p.file.value()].path.c_str(), p.pid.c_str(), p.name.c_str(), p.rank.value_or(-1),
                p.world_size.value_or(-1), p.engine.c_str(), p.host.c_str());
  }
  for (const auto& d : store.diagnostics.All()) {
    std::printf("diag %s %s x%llu [%s] %s\n", d.file.valid() ? store.files[d.file.value()].path.c_str() : "-",
                std::string(d.kind->code).c_str(), static_cast<unsigned long long>(d.count),
                std::string(Name(d.kind->severity)).c_str(), d.places.empty() ? "" : d.places[0].c_str());
  }
  return 0;
}
