// Writes Kineto-like JSON of a given size: python frames, framework operators with input dims, runtime calls, kernels
// and flow arrows of a decoder model that serves steps, in the order in which the profiler writes them (operators of
// the whole recording first, then interpreter frames, then runtime calls and device work). Usage: bench_generate OUT
// MEGABYTES

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.hpp"

namespace {

constexpr int kLayers = 32;
constexpr int64_t kBaseTime = 1'790'857'026'000'000'000;
constexpr int kPid = 16361;
constexpr size_t kFlushBytes = 1u << 20;
constexpr double kBytesPerStep = 1'180'000;  // measured on the output; sets the number of steps for a size

struct OpShape {
  const char* name;
  const char* dims;
  const char* types;
  const char* kernel;
};

constexpr OpShape kOps[] = {
    {"aten::mm", "[[32, 4096], [4096, 6144]]", "[\"c10::BFloat16\", \"c10::BFloat16\"]",
     "nvjet_tst_64x64_64x16_2x1_v_bz_TNT"},
    {"aten::add_", "[[32, 4096], [32, 4096], []]", "[\"c10::BFloat16\", \"c10::BFloat16\", \"Scalar\"]",
     "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, "
     "3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)"},
    {"aten::_softmax", "[[32, 32, 1, 1024], [], []]", "[\"float\", \"Scalar\", \"Scalar\"]",
     "void (anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, (anonymous "
     "namespace)::SoftMaxForwardEpilogue>(float*, float const*, int)"},
    {"vllm::unified_attention_with_output", "[[32, 32, 128], [32, 8, 128], [32, 8, 128], [32, 32, 128]]",
     "[\"c10::BFloat16\", \"c10::BFloat16\", \"c10::BFloat16\", \"c10::BFloat16\"]",
     "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, "
     "cutlass::bfloat16_t> >(Flash_fwd_params)"},
    {"aten::copy_", "[[32, 4096], [32, 4096], []]", "[\"c10::BFloat16\", \"float\", \"Scalar\"]",
     "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>(int)"},
};

constexpr const char* kFrameNames[] = {"vllm/model_executor/models/llama.py(298): forward",
                                       "nn.Module: LlamaDecoderLayer_%d",
                                       "torch/nn/modules/module.py(1777): _call_impl",
                                       "vllm/model_executor/layers/linear.py(544): forward",
                                       "nn.Module: QKVParallelLinear_%d",
                                       "<built-in method linear of type object at 0x7f2b5c8b2a20>"};

/// Appends text to a file in large pieces.
class Output {
 public:
  explicit Output(std::FILE* file) : file_(file) {}
  ~Output() { Flush(); }

  template <class... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    if (text_.size() > kFlushBytes) Flush();
  }

 private:
  void Flush() {
    if (std::fwrite(text_.data(), 1, text_.size(), file_) != text_.size()) std::exit(2);
    text_.clear();
  }

  std::FILE* file_;
  std::string text_;
};

enum class Pass : uint8_t { kOperators, kFrames, kDevice };

/// Plays the whole recording once and writes the events of one pass; every pass sees the same times.
class Player {
 public:
  Player(Output& out, Pass pass, bool& first) : out_(out), pass_(pass), first_(first) {}

  void Play(int steps) {
    for (int step = 0; step < steps; ++step) Step(step);
  }

 private:
  bool Writes(Pass pass) const { return pass_ == pass; }
  void Separate() {
    out_.Add("{}", first_ ? "\n  " : ",\n  ");
    first_ = false;
  }
  static std::string Micros(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }
  int64_t Jitter(int64_t ns) { return ns + static_cast<int64_t>(rng_.Below(static_cast<uint64_t>(ns) / 4 + 1)); }

  void Step(int step) {
    const int64_t begin = now_;
    now_ += 2000;
    for (int layer = 0; layer < kLayers; ++layer) Layer(layer);
    now_ += 2000;
    if (Writes(Pass::kOperators)) {
      Separate();
      out_.Add(R"json({{
    "ph": "X", "cat": "user_annotation", "name": "execute_context_0(0)_generation_32({})", "pid": {}, "tid": {},
    "ts": {}, "dur": {},
    "args": {{
      "External id": {},"Record function id": 0, "Ev Idx": {}
    }}
  }})json",
               32 + step % 7, kPid, kPid, Micros(begin), Micros(now_ - begin), external_, external_);
    }
    now_ += Jitter(60'000);
  }

  void Layer(int layer) {
    std::vector<std::pair<int64_t, int>> open;
    for (int i = 0; i < static_cast<int>(std::size(kFrameNames)); ++i) {
      open.emplace_back(now_, i);
      now_ += Jitter(900);
    }
    for (int i = 0; i < 24; ++i) Operator(kOps[(layer + i) % std::size(kOps)], layer);
    while (!open.empty()) {
      now_ += 300;
      Frame(open.back().first, now_ - open.back().first, kFrameNames[open.back().second], layer,
            static_cast<int>(open.size()));
      open.pop_back();
    }
  }

  void Frame(int64_t begin, int64_t duration, const char* name, int layer, int depth) {
    ++python_;
    if (!Writes(Pass::kFrames)) return;
    std::string text(name);
    if (const size_t at = text.find("%d"); at != std::string::npos) {  // always at the end
      text.resize(at);
      text += std::to_string(layer);
    }
    Separate();
    out_.Add(R"json({{
    "ph": "X", "cat": "python_function", "name": "{}", "pid": {}, "tid": {},
    "ts": {}, "dur": {},
    "args": {{
      "Python parent id": {}, "Python id": {}, "Ev Idx": {}
    }}
  }})json",
             text, kPid, kPid, Micros(begin), Micros(duration), python_ - depth, python_, python_ + 100000);
  }

  void Operator(const OpShape& shape, int layer) {
    const int64_t begin = now_;
    const uint64_t id = ++external_;
    now_ += Jitter(2500);
    const int64_t call = now_;
    const int64_t call_duration = Jitter(4000);
    now_ += call_duration + Jitter(1200);
    const int64_t kernel = std::max(device_, call + 3000);
    const int64_t kernel_duration = Jitter(5000 + 1000 * (layer % 5));
    device_ = kernel + kernel_duration + 800;
    if (Writes(Pass::kOperators)) {
      Separate();
      out_.Add(R"json({{
    "ph": "X", "cat": "cpu_op", "name": "{}", "pid": {}, "tid": {},
    "ts": {}, "dur": {},
    "args": {{
      "External id": {},"Record function id": 0, "Concrete Inputs": ["", "", ""], "Input type": {}, "Input Strides": [[4096, 1], [1, 4096]], "Input Dims": {}, "Ev Idx": {}
    }}
  }})json",
               shape.name, kPid, kPid, Micros(begin), Micros(now_ - begin), id, shape.types, shape.dims, id - 1);
    }
    if (Writes(Pass::kDevice)) Device(shape, id, call, call_duration, kernel, kernel_duration);
  }

  void Device(const OpShape& shape, uint64_t id, int64_t call, int64_t call_duration, int64_t kernel,
              int64_t duration) {
    Separate();
    out_.Add(R"json({{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": {}, "tid": {},
    "ts": {}, "dur": {},
    "args": {{
      "External id": {}, "cbid": 211, "correlation": {}
    }}
  }},
  {{
    "ph": "s", "id": {}, "pid": {}, "tid": {}, "ts": {},
    "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 7,
    "ts": {}, "dur": {},
    "args": {{
      "External id": {}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {}, "registers per thread": 32, "shared memory": 0, "blocks per SM": 0.969697, "warps per SM": 3.878788, "grid": [128, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 6
    }}
  }},
  {{
    "ph": "f", "id": {}, "pid": 0, "tid": 7, "ts": {},
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }})json",
             kPid, kPid, Micros(call), Micros(call_duration), id, id, id, kPid, kPid, Micros(call), shape.kernel,
             Micros(kernel), Micros(duration), id, id, id, Micros(kernel));
  }

  Output& out_;
  Pass pass_;
  bool& first_;
  teller::base::Rng rng_{1};
  int64_t now_ = 5'129'590'706'927'034;
  int64_t device_ = 0;
  uint64_t external_ = 0;
  uint64_t python_ = 0;
};

void WriteTrace(Output& out, int steps) {
  out.Add(R"json({{
  "schemaVersion": 1,
  "deviceProperties": [
    {{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84943110144}}
  ],
  "distributedInfo": {{"backend": "nccl", "rank": 0, "world_size": 1}},
  "vllm_version": "0.11.0",
  "host_name": "bench",
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": {},
  "traceEvents": [)json",
          kBaseTime);
  bool first = true;
  for (const Pass pass : {Pass::kOperators, Pass::kFrames, Pass::kDevice}) Player(out, pass, first).Play(steps);
  out.Add(R"json(,
  {{
    "name": "process_name", "ph": "M", "ts": 5129590706927.034, "pid": {0}, "tid": 0, "args": {{"name": "VLLM::Worker_TP0"}}
  }},
  {{
    "name": "thread_name", "ph": "M", "ts": 5129590706927.034, "pid": 0, "tid": 7, "args": {{"name": "stream 7 "}}
  }}
  ],
  "traceName": "/tmp/bench.json"
}}
)json",
          kPid);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || std::atof(argv[2]) <= 0) {
    std::fprintf(stderr, "usage: bench_generate OUT MEGABYTES\n");
    return 2;
  }
  std::FILE* file = std::fopen(argv[1], "wb");
  if (file == nullptr) {
    std::fprintf(stderr, "cannot write %s\n", argv[1]);
    return 2;
  }
  const int steps = std::max(1, static_cast<int>(std::atof(argv[2]) * 1e6 / kBytesPerStep + 0.5));
  {
    Output out(file);
    WriteTrace(out, steps);
  }
  return std::fclose(file) == 0 ? 0 : 2;
}
