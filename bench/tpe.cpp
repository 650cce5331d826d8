// Trains and encodes by Trace Pair Encoding and prints what it took: bench_tpe [OPTIONS], see bench/run --tpe.
//   --nodes N     nodes of generated steps to train on (default 4000000)
//   --file PATH   train on a file of symbols instead: a line "DEPTH NAME" for each node, an empty line after each step
//   --noise X     share of nodes that something happens to (default 0.002)
//   --merges N    (default 4096)      --threads N  of training (default 1)
//   --held-out N  nodes to encode, of other steps (default 2000000); with --file the last tenth of the steps
//   --windows P   write the training symbols to P, the held-out ones to P.held, as text: one character a symbol, 2,000
//   a line
//   --no-train    with --windows: write only
#include <sys/resource.h>
#include <time.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

#include "tpe/encoder.hpp"
#include "tpe/trainer.hpp"
#include "tpe_steps.hpp"

using namespace teller;

namespace {

struct Options {
  uint64_t nodes = 4'000'000;
  uint64_t held_out = 2'000'000;
  double noise = 0.002;
  uint32_t merges = 4096;
  unsigned threads = 1;
  std::string file;
  std::string windows;
  bool train = true;
};

[[noreturn]] void Die(const std::string& text) {
  std::fprintf(stderr, "bench_tpe: %s\n", text.c_str());
  std::exit(2);
}

Options Parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--no-train") {
      o.train = false;
      continue;
    }
    if (i + 1 == argc) Die("option " + name + " is unknown or needs a value");
    const char* value = argv[++i];
    if (name == "--nodes")
      o.nodes = std::strtoull(value, nullptr, 10);
    else if (name == "--held-out")
      o.held_out = std::strtoull(value, nullptr, 10);
    else if (name == "--noise")
      o.noise = std::strtod(value, nullptr);
    else if (name == "--merges")
      o.merges = static_cast<uint32_t>(std::strtoul(value, nullptr, 10));
    else if (name == "--threads")
      o.threads = static_cast<unsigned>(std::strtoul(value, nullptr, 10));
    else if (name == "--file")
      o.file = value;
    else if (name == "--windows")
      o.windows = value;
    else
      Die("unknown option " + name);
  }
  return o;
}

/// Symbols as characters that no tokenizer treats as special, 2,000 to a line, over the ends of steps.
class Windows {
 public:
  explicit Windows(const std::string& path) : out_(path, std::ios::binary) {}
  void Add(const std::vector<uint32_t>& symbols) {
    for (const uint32_t symbol : symbols) {
      const uint32_t c = 0x4E00 + symbol % 20000;  // CJK: three bytes in UTF-8
      const char bytes[] = {static_cast<char>(0xE0 | (c >> 12)), static_cast<char>(0x80 | ((c >> 6) & 0x3F)),
                            static_cast<char>(0x80 | (c & 0x3F))};
      out_.write(bytes, 3);
      if (++count_ % 2000 == 0) out_.put('\n');
    }
  }

 private:
  std::ofstream out_;
  uint64_t count_ = 0;
};

double Since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Processor time of this thread: what encoding costs a core, however many others want it.
double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double PeakRss() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

std::vector<tpe::Forest> ReadSteps(const std::string& path, std::vector<std::string>& names) {
  std::ifstream in(path);
  if (!in) Die("cannot read " + path);
  std::map<std::string, uint32_t> ids;
  std::vector<tpe::Forest> steps(1);
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) {
      if (!steps.back().symbols.empty()) steps.emplace_back();
      continue;
    }
    char* name = nullptr;
    const auto depth = static_cast<uint32_t>(std::strtoul(line.c_str(), &name, 10));
    const auto [at, is_new] = ids.emplace(*name == '\0' ? name : name + 1, static_cast<uint32_t>(names.size()));
    if (is_new) names.push_back(at->first);
    steps.back().symbols.push_back(at->second);
    steps.back().depths.push_back(depth);
  }
  if (steps.back().symbols.empty()) steps.pop_back();
  return steps;
}

struct Input {
  tpe::Corpus corpus{tpe::Corpus::Options{.merge_equal = false}};  // equal steps must not make it look fast
  std::vector<tpe::Forest> held_out;                               // symbols of the corpus
};

void Take(Input& input, Windows* windows, const tpe::Forest& step) {
  if (windows != nullptr) windows->Add(step.symbols);
  if (const auto status = input.corpus.Add({step.symbols, step.depths}); !status) Die(status.error().Text());
}

Input MakeInput(const Options& o, Windows* windows, Windows* held) {
  Input input;
  const uint32_t op = *input.corpus.AddClass("op");
  if (!o.file.empty()) {
    std::vector<std::string> names;
    std::vector<tpe::Forest> steps = ReadSteps(o.file, names);
    for (const std::string& name : names) (void)*input.corpus.AddSymbol(op, name);
    const size_t train = steps.size() - steps.size() / 10;
    for (size_t i = 0; i < train; ++i) Take(input, windows, steps[i]);
    input.held_out.assign(steps.begin() + static_cast<ptrdiff_t>(train), steps.end());
  } else {
    for (uint32_t i = 0; i < bench::StepMaker::kSymbols; ++i)
      (void)*input.corpus.AddSymbol(op, "op" + std::to_string(i));
    bench::StepMaker maker(1, o.noise);
    input.corpus.Reserve(o.nodes + o.nodes / 500 + 10000);
    while (input.corpus.node_count() < o.nodes) Take(input, windows, maker.Next());
    for (uint64_t nodes = 0; nodes < o.held_out; nodes += input.held_out.back().symbols.size()) {
      input.held_out.push_back(maker.Next());
    }
  }
  if (held != nullptr) {
    for (const tpe::Forest& step : input.held_out) held->Add(step.symbols);
  }
  return input;
}

void MeasureEncoding(const tpe::Vocabulary& vocabulary, std::vector<tpe::Forest>& steps,
                     const std::vector<std::string>& names) {
  std::vector<uint32_t> ids;
  for (const std::string& name : names) ids.push_back(vocabulary.SymbolFor(0, name).id);
  uint64_t nodes = 0;
  for (tpe::Forest& step : steps) {
    for (uint32_t& symbol : step.symbols) symbol = ids[symbol];
    nodes += step.symbols.size();
  }
  if (nodes == 0) return;
  auto start = std::chrono::steady_clock::now();
  const tpe::Encoder encoder(vocabulary);
  const double build = Since(start);
  tpe::EncodeScratch scratch;
  tpe::Tokens tokens;
  double best = 1e9, first = 0;
  uint64_t count = 0;
  tpe::EncodeStats stats;
  for (int round = 0; round < 15; ++round) {
    count = 0;
    stats = {};
    const double cpu = CpuSeconds();
    for (const tpe::Forest& step : steps) {
      if (const auto status = encoder.Encode({step.symbols, step.depths}, scratch, tokens, &stats); !status) {
        Die(status.error().Text());
      }
      count += tokens.size();
    }
    best = std::min(best, CpuSeconds() - cpu);
    if (round == 0) first = CpuSeconds() - cpu;
  }
  std::printf(
      "encode_nodes %llu\nencode_tokens %llu\nencode_cpu_seconds %.6f\nencode_first_cpu_seconds "
      "%.6f\nencode_mnodes_per_s "
      "%.1f\n"
      "encode_steps_per_node %.2f\nencode_matched %.3f\nencoder_build_seconds %.6f\n",
      static_cast<unsigned long long>(nodes), static_cast<unsigned long long>(count), best, first,
      static_cast<double>(nodes) / best / 1e6, static_cast<double>(stats.steps) / static_cast<double>(nodes),
      static_cast<double>(stats.matched) / static_cast<double>(nodes), build);
}

}  // namespace

int main(int argc, char** argv) {
  const Options o = Parse(argc, argv);
  Windows* windows = nullptr;
  Windows* held = nullptr;
  if (!o.windows.empty()) {
    windows = new Windows(o.windows);
    held = new Windows(o.windows + ".held");
  }
  Input input = MakeInput(o, windows, held);
  delete windows;
  delete held;
  const double input_rss = PeakRss();
  if (!o.train) return 0;
  std::vector<std::string> names;
  for (uint32_t i = 0; i < input.corpus.symbol_count(); ++i) names.emplace_back(input.corpus.symbol_name(i));
  const uint64_t nodes = input.corpus.node_count();
  const uint64_t sequences = input.corpus.sequence_count();
  tpe::TrainStats stats;
  const auto start = std::chrono::steady_clock::now();
  const double cpu = CpuSeconds();
  const auto vocabulary = tpe::Train(std::move(input.corpus), {.max_merges = o.merges, .threads = o.threads}, &stats);
  const double seconds = Since(start);
  const double cpu_seconds = CpuSeconds() - cpu;  // of all work only with one thread
  if (!vocabulary) Die(vocabulary.error().Text());
  std::printf(
      "train_nodes %llu\ntrain_sequences %llu\ntrain_merges %u\ntrain_tokens %llu\ntrain_seconds "
      "%.3f\ntrain_cpu_seconds %.3f\n"
      "train_mnodes_per_s %.2f\ntrain_occurrences_per_node %.2f\ntrain_list_steps_per_node %.2f\ntrain_heap_pops "
      "%llu\ntrain_pairs %llu\n"
      "train_peak_bytes_per_node %.2f\ninput_rss_bytes_per_node %.2f\nrss_bytes_per_node %.2f\nrss_bytes %.0f\n",
      static_cast<unsigned long long>(nodes), static_cast<unsigned long long>(sequences), vocabulary->merge_count(),
      static_cast<unsigned long long>(stats.tokens), seconds, cpu_seconds, static_cast<double>(nodes) / seconds / 1e6,
      static_cast<double>(stats.occurrences) / static_cast<double>(nodes),
      static_cast<double>(stats.list_steps) / static_cast<double>(nodes),
      static_cast<unsigned long long>(stats.heap_pops), static_cast<unsigned long long>(stats.pairs_seen),
      static_cast<double>(stats.peak_bytes) / static_cast<double>(nodes), input_rss / static_cast<double>(nodes),
      PeakRss() / static_cast<double>(nodes), PeakRss());
  uint32_t longest = 0;
  for (uint32_t id = 0; id < vocabulary->size(); ++id) longest = std::max(longest, vocabulary->node_count(id));
  std::printf("longest_token %u\n", longest);
  MeasureEncoding(*vocabulary, input.held_out, names);
  return 0;
}
