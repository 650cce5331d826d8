#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace teller::tree {

/// What a kernel does, as far as its name tells. Sequences of one model on other batch sizes, libraries or GPUs have
/// other kernels of the same classes in the same order.
enum class KernelClass : uint8_t {
  kUnknown = 0,
  kGemm = 1,
  kAttention = 2,
  kNorm = 3,
  kRotary = 4,
  kActivation = 5,
  kCacheWrite = 6,
  kMoe = 7,
  kCollective = 8,
  kReduce = 9,
  kCopy = 10,  ///< elementwise kernels that only move or convert
};

/// Class of a kernel by its name; also of a framework operator or module, whose names use the same words.
KernelClass ClassOfName(std::string_view name);

/// The name without what depends on shapes: every number, so that tiles, unrolls and template sizes fall together.
/// "triton_poi_fused_add_12" -> "triton_poi_fused_add_#".
std::string FamilyOfName(std::string_view name);

/// The function's own name, without template arguments and parameters: "at::native::elementwise_kernel" of a demangled
/// or of an Itanium-mangled name (nested names only; anything else is given back up to its first '<' or '(').
std::string StemOfName(std::string_view name);

}  // namespace teller::tree
