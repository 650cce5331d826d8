// Speed of re-timing: building the dependency graph and replaying a run, against building the trees of the same run.
// The run is made in memory: ranks with a host thread that launches kernels below operators and interpreter frames, a
// stream, and an all-reduce each layer. Usage: bench_retime [SPANS] [ROUNDS]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/rng.hpp"
#include "retime/replay.hpp"
#include "tree/build.hpp"

using namespace teller;

namespace {

constexpr base::Nanos kUs = base::kMicro;
constexpr int kRanks = 4;
constexpr int kLayers = 32;
constexpr int kOps = 6;  // of a layer

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Appends spans of one track in the order in which stores keep them.
class TrackWriter {
 public:
  TrackWriter(trace::Store& store, uint32_t process, bool is_stream) : store_(store) {
    trace::Track track;
    track.process = trace::ProcessRow(process);
    track.is_stream = is_stream;
    track.first_span = static_cast<uint32_t>(store.spans.size());
    store.tracks.push_back(track);
  }
  void Add(trace::SpanKind kind, base::StringId name, base::Nanos begin, base::Nanos length, uint32_t correlation = 0) {
    const auto row = static_cast<uint32_t>(store_.spans.size());
    store_.spans.begin.push_back(begin);
    store_.spans.duration.push_back(length);
    store_.spans.name.push_back(name);
    store_.spans.track.push_back(trace::TrackRow(static_cast<uint32_t>(store_.tracks.size() - 1)));
    store_.spans.category.push_back(static_cast<uint8_t>(kind));
    if (correlation != 0) {
      trace::GpuArgs args;
      args.correlation = correlation;
      store_.gpu_args.Append(row, args);
    }
    ++store_.tracks.back().span_count;
  }

 private:
  trace::Store& store_;
};

struct Kernel {
  base::Nanos begin, length;
  bool collective;
};

/// Times of a rank's kernels when all ranks do the same but for jitter.
std::vector<std::vector<Kernel>> Kernels(size_t steps) {
  base::Rng rng(1);
  std::vector<std::vector<Kernel>> ranks(kRanks);
  std::vector<base::Nanos> at(kRanks, base::kSecond);
  for (size_t layer = 0; layer < steps * kLayers; ++layer) {
    for (int r = 0; r < kRanks; ++r) {
      for (int op = 0; op < kOps; ++op) {
        const base::Nanos length = (20 + static_cast<base::Nanos>(rng.Below(10))) * kUs;
        ranks[static_cast<size_t>(r)].push_back({at[static_cast<size_t>(r)], length, false});
        at[static_cast<size_t>(r)] += length + kUs;
      }
    }
    const base::Nanos end = *std::max_element(at.begin(), at.end()) + 15 * kUs;
    for (size_t r = 0; r < kRanks; ++r) {
      ranks[r].push_back({at[r], end - at[r], true});
      at[r] = end + kUs;
    }
  }
  return ranks;
}

trace::Store MakeRun(size_t spans) {
  trace::Store store;
  store.files.push_back({});
  for (int kind = 0; kind < trace::kSpanKinds; ++kind)
    store.categories.push_back({"c", static_cast<trace::SpanKind>(kind)});
  const auto name = [&](const std::string& text) { return store.strings.Intern(text); };
  const size_t per_step = kLayers * (1 + (kOps + 1) * 4) + 1;
  const size_t steps = std::max<size_t>(1, spans / kRanks / per_step);
  const auto ranks = Kernels(steps);
  std::vector<base::StringId> frames, ops, kernels;
  for (int op = 0; op <= kOps; ++op) {
    frames.push_back(name("model.py: layer_call_" + std::to_string(op)));
    ops.push_back(name("aten::op" + std::to_string(op)));
    kernels.push_back(name(op == kOps ? "ncclDevKernel_AllReduce_Sum_bf16_RING_LL" : "kernel_" + std::to_string(op)));
  }
  const auto launch = name("cudaLaunchKernel");
  for (uint32_t r = 0; r < kRanks; ++r) {
    trace::Process process;
    process.file = trace::FileRow(0);
    process.rank = static_cast<int>(r);
    store.processes.push_back(process);
    uint32_t id = 1;
    {
      TrackWriter host(store, r, false);
      size_t k = 0;
      for (size_t step = 0; step < steps; ++step) {
        const base::Nanos step_begin = ranks[r][k].begin - 30 * kUs;
        const base::Nanos step_length = 9 * kUs * kLayers * (kOps + 1) + 5 * kUs;
        host.Add(trace::SpanKind::kAnnotation, name("execute_context_0(0)_generation_8(8)"), step_begin, step_length);
        base::Nanos at = step_begin + kUs;
        for (int layer = 0; layer < kLayers; ++layer) {
          for (size_t op = 0; op <= kOps; ++op, ++k, at += 9 * kUs) {
            host.Add(trace::SpanKind::kPython, frames[op], at, 8 * kUs);
            host.Add(trace::SpanKind::kOp, ops[op], at + kUs, 6 * kUs);
            host.Add(trace::SpanKind::kRuntime, launch, at + 2 * kUs, 4 * kUs, id++);
          }
        }
      }
    }
    TrackWriter stream(store, r, true);
    id = 1;
    for (size_t k = 0; k < ranks[r].size(); ++k) {
      stream.Add(trace::SpanKind::kKernel, kernels[k % (kOps + 1)], ranks[r][k].begin, ranks[r][k].length, id++);
    }
  }
  return store;
}

}  // namespace

int main(int argc, char** argv) {
  const size_t spans = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  double build = 1e9;
  double graph_time = 1e9;
  double replay = 1e9;
  size_t rows = 0;
  uint64_t cut = 0;
  double drift = 0;
  trace::Store store = MakeRun(spans);
  for (int round = 0; round < std::max(rounds, 1); ++round) {
    double start = Seconds();
    const trace::Trees trees = tree::Build(store, 0);
    build = std::min(build, Seconds() - start);
    start = Seconds();
    const retime::Graph graph = retime::BuildGraph(store, trees);
    graph_time = std::min(graph_time, Seconds() - start);
    start = Seconds();
    const retime::Times times = retime::Replay(store, trees, graph);
    replay = std::min(replay, Seconds() - start);
    rows = store.spans.size();
    cut = times.dependencies_cut;
    const trace::SpanRow last(static_cast<uint32_t>(rows - 1));
    drift = static_cast<double>(times.end(last) - store.spans.end(last.value())) /
            static_cast<double>(store.spans.end(last.value()) - base::kSecond);
  }
  std::printf("spans %zu dependencies cut %lu, last kernel ends %+.2f %% off\n", rows, static_cast<unsigned long>(cut),
              100 * drift);
  std::printf("trees %.2f s, graph %.2f s, replay %.2f s: re-timing takes %.2f x the time of the trees\n", build,
              graph_time, replay, (graph_time + replay) / build);
  return 0;
}
