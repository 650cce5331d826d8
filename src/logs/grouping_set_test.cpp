#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "logs/grouping_set_for_test.hpp"

namespace teller::logs {

namespace {

/// Fills the holes of patterns. Only the generator's own bits are used, so that every platform makes the same set.
class Filler {
 public:
  explicit Filler(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t n) { return random_() % n; }

  std::string Fill(std::string_view pattern) {
    std::string out;
    while (!pattern.empty()) {
      const size_t open = pattern.find('{');
      const size_t close = open == std::string_view::npos ? open : pattern.find('}', open);
      const std::string_view name =
          close == std::string_view::npos ? std::string_view() : pattern.substr(open + 1, close - open - 1);
      const bool hole = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
      });
      if (open == std::string_view::npos || !hole) {
        const size_t end = open == std::string_view::npos ? pattern.size() : open + 1;
        out += pattern.substr(0, end);
        pattern.remove_prefix(end);
        continue;
      }
      out += pattern.substr(0, open);
      out += Value(name);
      pattern.remove_prefix(close + 1);
    }
    return out;
  }

 private:
  template <size_t N>
  std::string Pick(const std::array<std::string_view, N>& list) {
    return std::string(list[Below(N)]);
  }
  std::string Digits(uint64_t low, uint64_t high) { return std::to_string(low + Below(high - low)); }
  std::string Hex(size_t length) {
    std::string out;
    for (size_t i = 0; i < length; ++i) out.push_back("0123456789abcdef"[Below(16)]);
    return out;
  }
  std::string Words(size_t n) {
    static constexpr std::array<std::string_view, 24> kWords = {
        "hello",     "how",   "are",    "broken",  "connection", "reset", "by",    "peer",
        "transport", "retry", "Please", "explain", "the",        "tree",  "shape", "of",
        "last",      "token", "port",   "active",  "unknown",    "error", "size",  "guard"};
    std::string out;
    for (size_t i = 0; i < n; ++i) out += (i > 0 ? " " : "") + Pick(kWords);
    return out;
  }
  std::string Ip() { return Digits(10, 240) + "." + Digits(0, 250) + "." + Digits(0, 250) + "." + Digits(1, 250); }

  std::string Number(std::string_view kind) {
    if (kind == "int") return Digits(0, Below(3) == 0 ? 100'000 : 64);
    if (kind == "float") return Digits(0, 400) + "." + Digits(10, 99);
    if (kind == "ms") return Digits(0, 400) + "." + Digits(10, 99) + "ms";
    if (kind == "neg") return Below(2) == 0 ? "-1" : Digits(0, 5000);
    if (kind == "two") return "0" + Digits(0, 9);
    if (kind == "thousands") return Digits(1, 900) + "," + Digits(100, 999);
    if (kind == "status") return Digits(200, 504);
    if (kind == "hex") return "0x" + Hex(12);
    if (kind == "hexint") return Hex(1 + Below(3));
    if (kind == "hash") return Hex(40);
    if (kind == "uuid") return Hex(8) + "-" + Hex(4) + "-" + Hex(4) + "-" + Hex(4) + "-" + Hex(12);
    if (kind == "bus") return "0000:" + Hex(2) + ":00";
    if (kind == "gid") return "fe:80:00:00:" + Hex(2) + ":" + Hex(2) + ":03:00";
    if (kind == "date") return "2026-07-" + Digits(10, 28);
    if (kind == "time") return "1" + Digits(0, 9) + ":" + Digits(10, 59) + ":" + Digits(10, 59);
    if (kind == "tree") return Digits(0, 8) + "/-1/-1->" + Digits(0, 8) + "->" + (Below(2) == 0 ? "-1" : Digits(0, 8));
    if (kind == "list") {
      std::string out = Digits(1, 9);
      for (uint64_t n = Below(5); n > 0; --n) out += ", " + Digits(1, 99);
      return out;
    }
    return {};
  }

  std::string Name(std::string_view kind) {
    static constexpr std::array<std::string_view, 14> kWord = {
        "preprocessing", "tensorrt_llm", "python3", "nvidia-smi", "CUMEM",      "IPC",  "flash_attn",
        "ensemble",      "n_layer",      "vllm",    "kubelet",    "batch_gemm", "rope", "containerd"};
    static constexpr std::array<std::string_view, 5> kModel = {"Qwen/Qwen3-8B", "meta-llama/Llama-3.1-70B",
                                                               "HuggingFaceH4/zephyr-7b-beta", "gpt2", "mistral-nemo"};
    static constexpr std::array<std::string_view, 5> kWorker = {"VllmWorker-3", "EngineCore_DP0", "Worker_TP1",
                                                                "EngineCore", "Worker_DP0_TP1_EP1"};
    static constexpr std::array<std::string_view, 4> kMethod = {"execute_model", "sample_tokens", "get_kv_cache_spec",
                                                                "initialize_cache"};
    static constexpr std::array<std::string_view, 3> kMode = {"RECOMPUTE", "SWAP", "MAX_UTILIZATION"};
    static constexpr std::array<std::string_view, 4> kBackend = {"FLASHINFER", "FLASH_ATTN", "TRITON_MLA", "fa3"};
    static constexpr std::array<std::string_view, 4> kDtype = {"bfloat16", "float16", "f16", "q8_0"};
    static constexpr std::array<std::string_view, 3> kNet = {"IB", "Socket", "AWS_Libfabric"};
    static constexpr std::array<std::string_view, 3> kNic = {"eth0", "ens8f0np0", "bond0"};
    static constexpr std::array<std::string_view, 4> kState = {"INITIALIZED", "PENDING", "EXECUTING", "RELEASED"};
    static constexpr std::array<std::string_view, 4> kOp = {"ALLREDUCE", "BROADCAST", "_ALLGATHER_BASE", "SEND"};
    static constexpr std::array<std::string_view, 3> kUrl = {"/v1/chat/completions", "/v1/completions", "/tokenize"};
    if (kind == "word") return Pick(kWord);
    if (kind == "kernel") return Pick(kWord) + "_" + Pick(kWord) + "_kernel";
    if (kind == "envname") return Below(2) == 0 ? "DEBUG" : "IB_TIMEOUT";
    if (kind == "plugin") return Pick(kWord) + "_plugin";
    if (kind == "model") return Pick(kModel);
    if (kind == "worker") return Pick(kWorker);
    if (kind == "method") return Pick(kMethod);
    if (kind == "mode") return Pick(kMode);
    if (kind == "backend") return Pick(kBackend);
    if (kind == "dtype") return Pick(kDtype);
    if (kind == "net") return Pick(kNet);
    if (kind == "nic") return Pick(kNic);
    if (kind == "hca") return "mlx5_" + Digits(0, 9);
    if (kind == "state") return Pick(kState);
    if (kind == "op") return Pick(kOp);
    if (kind == "gpu") return Below(2) == 0 ? "A10" : "H100-SXM5";
    if (kind == "device") return Below(2) == 0 ? "CUDA" + Digits(0, 8) : "CPU";
    if (kind == "host") return "node" + Digits(1, 40);
    if (kind == "bool") return Below(2) == 0 ? "True" : "False";
    if (kind == "url") return Below(2) == 0 ? Pick(kUrl) : "http://" + Ip() + ":" + Digits(8000, 9000);
    if (kind == "verb") return Below(3) == 0 ? "POST" : "GET";
    if (kind == "reason") return Below(4) == 0 ? "Bad Request" : Below(4) == 0 ? "Not Found" : "OK";
    if (kind == "link") return Below(3) == 0 ? "DOWN" : Below(2) == 0 ? "INIT" : "ACTIVE";
    if (kind == "file") return "model-" + Digits(1, 9) + ".safetensors";
    return {};
  }

  std::string Value(std::string_view kind) {
    if (std::string number = Number(kind); !number.empty()) return number;
    if (std::string name = Name(kind); !name.empty()) return name;
    if (kind == "ip") return Ip() + ":" + Digits(1024, 65'000);
    if (kind == "ipv4") return Ip();
    if (kind == "path") return "/srv/" + Value("word") + "/" + Hex(6) + "/config.json";
    if (kind == "words") return Words(1 + Below(6));
    if (kind == "words2") return Words(2);
    if (kind == "req") return Below(2) == 0 ? "cmpl-" + Hex(32) + "-0" : "chatcmpl-" + Hex(32);
    return "{" + std::string(kind) + "}";  // no such hole: the text stands as it is
  }

  std::mt19937_64 random_;
};

}  // namespace

LabelledSet MakeLabelled(const std::vector<Statement>& statements, size_t lines, uint64_t seed) {
  Filler fill(seed);
  std::vector<size_t> order;
  for (size_t s = 0; s < statements.size() && order.size() < lines; ++s) order.push_back(s);
  std::vector<size_t> wheel;
  for (size_t s = 0; s < statements.size(); ++s) {
    for (size_t n = 0; n < static_cast<size_t>(statements[s].weight); ++n) wheel.push_back(s);
  }
  while (order.size() < lines) order.push_back(wheel[fill.Below(wheel.size())]);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[fill.Below(i)]);
  LabelledSet set;
  set.truth = order;
  set.statements = std::min(statements.size(), lines);
  for (const size_t s : order) {
    trace::LogRecord record;
    record.source = statements[s].source;
    record.message = fill.Fill(statements[s].pattern);
    set.store.logs.push_back(std::move(record));
  }
  return set;
}

double GroupingAccuracy(const trace::Store& store, const std::vector<size_t>& truth) {
  std::map<uint32_t, size_t> group_size;
  std::map<size_t, size_t> statement_size;
  std::map<std::pair<uint32_t, size_t>, size_t> both;
  for (size_t i = 0; i < truth.size(); ++i) {
    const uint32_t group = store.logs[i].template_id;
    ++group_size[group];
    ++statement_size[truth[i]];
    ++both[{group, truth[i]}];
  }
  size_t right = 0;
  for (const auto& [pair, n] : both) {
    if (pair.first != 0 && group_size[pair.first] == n && statement_size[pair.second] == n) right += n;
  }
  return truth.empty() ? 1 : static_cast<double>(right) / static_cast<double>(truth.size());
}

}  // namespace teller::logs
