#include "tree/kernel_name.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace teller::tree {

namespace {

constexpr size_t kMaxName = 4096;  // names of fused functors are long; what tells them apart stands in front

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

struct Word {
  std::string_view text;
  KernelClass kind;
};

/// In the order of preference: "rmsnorm_quant" is a norm, "reduce_scatter" no reduction, "flash_fwd_splitkv" no GEMM.
constexpr std::array<Word, 52> kWords = {{
    {"nccl", KernelClass::kCollective},
    {"rccl", KernelClass::kCollective},
    {"all_reduce", KernelClass::kCollective},
    {"allreduce", KernelClass::kCollective},
    {"cross_device_reduce", KernelClass::kCollective},
    {"all_gather", KernelClass::kCollective},
    {"allgather", KernelClass::kCollective},
    {"reduce_scatter", KernelClass::kCollective},
    {"reducescatter", KernelClass::kCollective},
    {"multimem", KernelClass::kCollective},
    {"deep_ep", KernelClass::kCollective},
    {"fmha", KernelClass::kAttention},
    {"attention", KernelClass::kAttention},
    {"and_cache", KernelClass::kCacheWrite},
    {"kvcache", KernelClass::kCacheWrite},
    {"kv_cache", KernelClass::kCacheWrite},
    {"set_kv_buffer", KernelClass::kCacheWrite},
    {"layernorm", KernelClass::kNorm},
    {"layer_norm", KernelClass::kNorm},
    {"rmsnorm", KernelClass::kNorm},
    {"rms_norm", KernelClass::kNorm},
    {"group_norm", KernelClass::kNorm},
    {"batch_norm", KernelClass::kNorm},
    {"rotary", KernelClass::kRotary},
    {"rope", KernelClass::kRotary},
    {"flash", KernelClass::kAttention},
    {"attn", KernelClass::kAttention},
    {"paged", KernelClass::kAttention},
    {"mla_", KernelClass::kAttention},
    {"sdpa", KernelClass::kAttention},
    {"topk", KernelClass::kMoe},
    {"moe", KernelClass::kMoe},
    {"expert", KernelClass::kMoe},
    {"act_and_mul", KernelClass::kActivation},
    {"silu", KernelClass::kActivation},
    {"gelu", KernelClass::kActivation},
    {"swiglu", KernelClass::kActivation},
    {"gemm", KernelClass::kGemm},
    {"gemv", KernelClass::kGemm},
    {"cijk_", KernelClass::kGemm},
    {"nvjet", KernelClass::kGemm},
    {"cutlass", KernelClass::kGemm},
    {"xmma", KernelClass::kGemm},
    {"splitk", KernelClass::kGemm},
    {"matmul", KernelClass::kGemm},
    {"addmm", KernelClass::kGemm},
    {"linear", KernelClass::kGemm},
    {"aten::mm", KernelClass::kGemm},
    {"aten::bmm", KernelClass::kGemm},
    {"copy", KernelClass::kCopy},
    {"reduce", KernelClass::kReduce},
    {"softmax", KernelClass::kReduce},
}};

/// "_ZN5aiter24add_rmsnorm_quant_kernelI..." -> "aiter::add_rmsnorm_quant_kernel"; empty when it is no such name.
std::string StemOfMangled(std::string_view name) {
  if (!name.starts_with("_Z")) return {};
  size_t at = 2;
  const bool nested = at < name.size() && name[at] == 'N';
  if (nested) ++at;
  std::string out;
  while (at < name.size() && IsDigit(name[at])) {
    size_t length = 0;
    while (at < name.size() && IsDigit(name[at]) && length < kMaxName)
      length = length * 10 + static_cast<size_t>(name[at++] - '0');
    if (length == 0 || length > name.size() - at) return {};
    if (!out.empty()) out += "::";
    out += name.substr(at, length);
    at += length;
    if (!nested) break;
  }
  return out;
}

}  // namespace

KernelClass ClassOfName(std::string_view name) {
  std::string text(name.substr(0, kMaxName));
  std::transform(text.begin(), text.end(), text.begin(), Lower);
  for (const Word& word : kWords) {
    if (text.find(word.text) != std::string::npos) return word.kind;
  }
  return KernelClass::kUnknown;
}

std::string FamilyOfName(std::string_view name) {
  std::string out;
  out.reserve(std::min(name.size(), kMaxName));
  for (const char c : name.substr(0, kMaxName)) {
    if (!IsDigit(c)) {
      out += c;
    } else if (out.empty() || out.back() != '#') {
      out += '#';
    }
  }
  return out;
}

std::string StemOfName(std::string_view name) {
  name = name.substr(0, kMaxName);
  if (std::string stem = StemOfMangled(name); !stem.empty()) return stem;
  if (name.starts_with("void ")) name.remove_prefix(5);
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  std::string out;
  for (size_t at = 0; at < name.size();) {
    if (name.substr(at).starts_with(kAnonymous)) {
      at += kAnonymous.size();
    } else if (name[at] == '<' || name[at] == '(') {
      break;
    } else {
      out += name[at++];
    }
  }
  // Library GEMMs spell their tiles into the name itself: "Cijk_Alik_Bljk_BBS_BH_..._MT64x32x256_...".
  if (const size_t tile = out.find("_MT"); out.starts_with("Cijk_") && tile != std::string::npos) out.resize(tile);
  return FamilyOfName(out);
}

}  // namespace teller::tree
