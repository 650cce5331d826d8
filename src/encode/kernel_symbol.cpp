#include "encode/kernel_symbol.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "encode/name_text.hpp"

namespace teller::encode {

namespace {

constexpr size_t kMaxName = 4096;  // what tells kernels apart stands in front
constexpr size_t kMaxIdentifiers = 64;

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string Lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), Lower);
  return out;
}

template <size_t N>
bool IsOneOf(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool IsDigits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), IsDigit);
}

/// Words that say as little without their namespace as "run": "intranode::dispatch", "marlin::Marlin".
bool IsSingleWord(std::string_view word) {
  constexpr size_t kLongest = 10;
  return word.size() <= kLongest && word.find('_') == std::string_view::npos;
}

/// A function's own qualified name, and the names that stand in its template arguments, in order.
struct Parts {
  std::vector<std::string_view> function;
  std::vector<std::string_view> arguments;
};

/// Itanium-mangled: every name is written as its length and its letters, so they can be read off without understanding
/// the rest; substitutions lose only repetitions.
Parts OfMangled(std::string_view name) {
  Parts parts;
  size_t at = 2;
  const bool nested = at < name.size() && name[at] == 'N';
  if (nested) ++at;
  bool inside = false;
  while (at < name.size() && parts.arguments.size() < kMaxIdentifiers) {
    if (!IsDigit(name[at])) {
      if (inside || name[at] == 'I' || name[at] == 'E' || !nested) inside = true;
      // "Li128E": a number as template argument.
      if (name[at] == 'L' && at + 2 < name.size()) {
        size_t end = at + 1;
        while (end < name.size() && !IsDigit(name[end]) && name[end] >= 'a' && name[end] <= 'z') ++end;
        size_t digits = end;
        while (digits < name.size() && IsDigit(name[digits])) ++digits;
        if (end == at + 2 && digits > end && digits < name.size() && name[digits] == 'E') {
          at = digits + 1;
          continue;
        }
      }
      // "S0_" refers back; its number is no length. "DF16b" is a built-in type.
      if (name[at] == 'S') {
        size_t end = at + 1;
        while (end < name.size() && (IsDigit(name[end]) || (name[end] >= 'A' && name[end] <= 'Z'))) ++end;
        if (end < name.size() && name[end] == '_') {
          at = end + 1;
          continue;
        }
      }
      if (name.substr(at).starts_with("DF")) {
        at += 2;
        while (at < name.size() && IsDigit(name[at])) ++at;
        continue;
      }
      ++at;
      continue;
    }
    size_t length = 0;
    while (at < name.size() && IsDigit(name[at]) && length < kMaxName)
      length = length * 10 + static_cast<size_t>(name[at++] - '0');
    if (length == 0 || length > name.size() - at) break;
    const std::string_view word = name.substr(at, length);
    at += length;
    if (word.starts_with("_GLOBAL__N_")) continue;
    (inside ? parts.arguments : parts.function).push_back(word);
  }
  return parts;
}

/// Cuts a demangled name at its brackets. "<" opens template arguments unless it is part of an operator's name.
Parts OfDemangled(std::string_view name) {
  Parts parts;
  std::vector<char> open;
  size_t at = 0;
  const auto hidden = [&](std::string_view what) {
    if (!name.substr(at).starts_with(what)) return false;
    at += what.size();
    return true;
  };
  while (at < name.size() && parts.arguments.size() < kMaxIdentifiers) {
    const char c = name[at];
    if (open.empty() && (hidden("(anonymous namespace)::") || hidden("<unnamed>::") || hidden("decltype(nullptr)")))
      continue;
    if (!open.empty() && (hidden("(anonymous namespace)") || hidden("<unnamed>"))) continue;
    if (IsLetter(c) || c == '_') {
      size_t end = at;
      while (end < name.size() && IsWord(name[end])) ++end;
      const std::string_view word = name.substr(at, end - at);
      at = end;
      const bool templated = !open.empty() && open.front() == '<';
      const bool qualifier =
          name.substr(at, 3).starts_with("::") && name.substr(at, 3) != "::{" && name.substr(at, 3) != "::[";
      if (templated && qualifier) continue;  // of a namespace
      if (open.empty()) {
        parts.function.push_back(word);
      } else if (templated) {
        parts.arguments.push_back(word);
      }
      continue;
    }
    ++at;
    if (c == ' ' && open.empty()) {
      // What stood before was the return type.
      parts = {};
    } else if (c == '<' || c == '(' || c == '[' || c == '{') {
      // The parameters of the function end its name.
      if (open.empty() && c != '<' && !parts.function.empty()) break;
      open.push_back(c);
    } else if (c == '>' || c == ')' || c == ']' || c == '}') {
      const char partner = c == '>' ? '<' : c == ')' ? '(' : c == ']' ? '[' : '{';
      // "a > b" inside of parentheses closes nothing.
      if (!open.empty() && open.back() == partner) open.pop_back();
    } else if (c == ':' && open.empty()) {
      // Arguments of an enclosing class are none of the function's; "Kernel<X>::run" keeps X when it is all that tells.
      continue;
    }
  }
  return parts;
}

/// Functions that run what their first functor says.
bool RunsAnArgument(std::string_view function) {
  static constexpr std::array<std::string_view, 12> kExact = {
      "kernel",     "kernel2",      "kentry",        "device_kernel", "run",    "launch",
      "kernel_val", "kernel_entry", "triton_kernel", "globalkernel",  "invoke", "operator"};
  static constexpr std::array<std::string_view, 6> kPart = {"elementwise",    "multi_tensor_apply", "trampoline",
                                                            "foreach_tensor", "apply_kernel",       "act_and_mul"};
  const std::string lower = Lowered(function);
  if (lower == "reduce_kernel" || IsOneOf(std::string_view(lower), kExact)) return true;
  return std::any_of(kPart.begin(), kPart.end(),
                     [&](std::string_view part) { return lower.find(part) != std::string::npos; });
}

/// Names in template arguments that say how something is computed or stored, not what.
bool SaysNothing(std::string_view word) {
  static constexpr std::array<std::string_view, 67> kWords = {
      "void",        "bool",         "char",       "short",       "int",      "long",     "unsigned",  "signed",
      "float",       "double",       "half",       "const",       "true",     "false",    "nullptr",   "lambda",
      "instance",    "operator",     "decltype",   "sizeof",      "std",      "at",       "c10",       "native",
      "cuda",        "hip",          "detail",     "memory",      "internal", "impl",     "array",     "tuple",
      "cutlass",     "cute",         "gemm",       "threadblock", "thread",   "epilogue", "transform", "arch",
      "layout",      "platform",     "kernel",     "conv",        "device",   "size_t",   "complex",   "bfloat16",
      "nv_bfloat16", "hip_bfloat16", "bfloat16_t", "half_t",      "float16",  "float32",  "float64",   "int8_t",
      "uint8_t",     "int32_t",      "int64_t",    "uint32_t",    "uint64_t", "rocprim",  "cub",       "thrust",
      "templates",   "target_arch",  "reduction"};
  std::string lower = Lowered(word);
  while (!lower.empty() && lower.front() == '_') lower.erase(0, 1);
  if (lower.size() < 3 || IsOneOf(std::string_view(lower), kWords)) return true;
  static constexpr std::array<std::string_view, 23> kParts = {
      "gpu_kernel_impl", "unaryfunctor",       "binaryfunctor",     "func_wrapper", "reduceop",
      "tensoriterator",  "offsetcalculator",   "opaquetype",        "array",        "loadwith",
      "storewith",       "binary_internal",    "scalartype",        "tensorlist",   "metadata",
      "enable_",         "broadcast_launcher", "integral_constant", "_ns",          "default_config",
      "config",          "integer_sequence",   "sequence"};
  const bool type = lower.find("bfloat16") != std::string::npos || lower.find("float8") != std::string::npos;
  if (type && lower.find("kernel") == std::string::npos) return true;
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return lower.find(part) != std::string::npos; });
}

/// "CUDAFunctor_add" and "AddFunctor" -> "add"; "threshold_kernel_impl" -> "threshold".
std::string FunctorName(std::string_view word) {
  std::string text = Lowered(word);
  static constexpr std::array<std::string_view, 11> kDropped = {"cudafunctoronself",
                                                                "cudafunctoronother",
                                                                "cudafunctor",
                                                                "functor",
                                                                "kernelimpl",
                                                                "_kernel_cuda",
                                                                "_kernel_impl",
                                                                "_kernel",
                                                                "_cuda",
                                                                "cuda",
                                                                "_impl"};
  for (const std::string_view dropped : kDropped) {
    const size_t found = text.find(dropped);
    if (found != std::string::npos && text.size() > dropped.size()) text.erase(found, dropped.size());
  }
  if (text.size() > 4 && text.ends_with("ops")) text.resize(text.size() - 3);
  while (!text.empty() && text.front() == '_') text.erase(0, 1);
  while (!text.empty() && text.back() == '_') text.pop_back();
  return text.empty() ? Lowered(word) : text;
}

/// Variants of one function that are chosen by alignment and strides.
std::string FunctionName(std::string_view word) {
  const std::string lower = Lowered(word);
  for (const std::string_view part : {"elementwise", "reduce_kernel", "multi_tensor_apply"}) {
    if (part == "reduce_kernel" ? lower == part
                                : lower.find(part) != std::string::npos && lower.find("kernel") != std::string::npos) {
      // "index_elementwise_kernel" and "_scatter_gather_elementwise_kernel" are functions of their own.
      if (part == "elementwise") {
        if (lower.find("index") != std::string::npos) return "index_elementwise";
        if (lower.find("scatter") != std::string::npos) return "scatter_gather_elementwise";
        if (lower.find("distribution") != std::string::npos) return "distribution_elementwise";
      }
      return part == "reduce_kernel" ? "reduce" : std::string(part);
    }
  }
  return std::string(word);
}

/// Names that libraries make up from what a kernel is built for: "ampere_sgemm_32x128_nn", "nvjet_tst_64x16_...".
bool IsLibraryName(std::string_view lower) {
  static constexpr std::array<std::string_view, 16> kBegins = {
      "ampere_", "volta_",  "turing_", "maxwell_", "pascal_", "hopper_",      "sm",   "cudnn_infer_",
      "nvjet",   "cutlass", "cijk_",   "igemm_",   "fmha",    "cudnn_ampere", "bmm_", "cudnn_generated_"};
  if (lower.starts_with("sm") && (lower.size() < 4 || !IsDigit(lower[2]))) return false;
  return std::any_of(kBegins.begin(), kBegins.end(), [&](std::string_view begin) { return lower.starts_with(begin); });
}

/// Keeps the parts of a library's name that say what is computed: no tiles, stages, alignments, architectures, types.
std::string LibraryName(std::string_view name) {
  static constexpr std::array<std::string_view, 34> kDropped = {
      "ampere", "volta",  "turing",   "maxwell", "pascal",    "hopper", "blackwell", "v",       "h",
      "bz",     "nz",     "coop",     "coopa",   "coopb",     "cta",    "splitk",    "stream",  "streamk",
      "sk",     "medium", "small",    "large",   "interior",  "exp",    "xregs",     "execute", "kernel",
      "infer",  "train",  "tensorop", "simt",    "optimized", "bf",     "indexed"};
  static constexpr std::array<std::string_view, 10> kWhat = {"gemm",  "bmm",  "glu",  "fprop", "dgrad",
                                                             "wgrad", "conv", "fmha", "attn",  "norm"};
  std::string out;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('_', at), name.size());
    std::string part = Lowered(name.substr(at, end - at));
    at = end + 1;
    std::string kept;
    // Names that are words, with the architecture among them: "fmhaSm100aKernel".
    if (const size_t sm = part.find("sm");
        sm != std::string::npos && sm > 0 && sm + 2 < part.size() && IsDigit(part[sm + 2])) {
      size_t stop = sm + 2;
      while (stop < part.size() && IsDigit(part[stop])) ++stop;
      if (stop < part.size() && (part[stop] == 'a' || part[stop] == 'f')) ++stop;
      part.erase(sm, stop - sm);
    }
    const bool digits = std::any_of(part.begin(), part.end(), IsDigit);
    const bool what =
        std::any_of(kWhat.begin(), kWhat.end(), [&](std::string_view w) { return part.find(w) != std::string::npos; });
    if (!digits && !IsOneOf(std::string_view(part), kDropped)) kept = part;
    if (digits && what) {
      std::copy_if(part.begin(), part.end(), std::back_inserter(kept), [](char c) { return !IsDigit(c); });
    }
    if (kept.empty()) continue;
    if (!out.empty()) out += '_';
    out += kept;
  }
  return out.empty() ? Lowered(name) : out;
}

/// "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT..." -> "Cijk_Alik_Bljk_BBS_BH": operands and types; what follows
/// are abilities of the build and its tiles.
std::string TensileName(std::string_view name) {
  size_t end = 0;
  for (int part = 0; part < 5 && end < name.size(); ++part) {
    const size_t begin = part == 0 ? 0 : end + 1;
    const size_t next = std::min(name.find('_', begin), name.size());
    const std::string_view word = name.substr(begin, next - begin);
    const bool type = part < 3 || std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    if (!type || word == "MT" || word == "AS" || word == "HA" || word == "SAV") break;
    end = next;
  }
  return std::string(name.substr(0, end));
}

/// "ncclKernel_AllReduce_RING_LL_Sum_float" and "ncclDevKernel_AllReduce_Sum_f32_RING_LL" -> "nccl:AllReduce".
std::string NcclName(std::string_view name) {
  const size_t first = name.find('_');
  if (first == std::string_view::npos || !Lowered(name.substr(0, first)).ends_with("kernel")) return {};
  const std::string_view rest = name.substr(first + 1);
  return "nccl:" + std::string(rest.substr(0, rest.find_first_of("_(")));
}

/// "triton_poi_fused_add_12" -> "triton_poi_fused_add"; tiles and large numbers go elsewhere too. Small numbers between
/// underscores are parts of a name ("q8_1").
std::string PlainName(std::string_view name) {
  constexpr size_t kSmallNumber = 2;  // digits
  if (name.starts_with("triton_")) {
    while (!name.empty() && IsDigit(name.back())) name.remove_suffix(1);
    while (name.ends_with('_')) name.remove_suffix(1);
    return std::string(name);
  }
  std::string out;
  bool first = true;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('_', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    at = end + 1;
    const bool small = part.size() <= kSmallNumber && IsDigits(part);
    const std::string kept = small ? std::string(part) : WithoutNumbers(part);
    if (kept == "#" && (out.ends_with("_#") || out == "#")) continue;
    if (!first) out += '_';
    first = false;
    out += kept;
  }
  while (out.ends_with("_#")) out.resize(out.size() - 2);
  return out;
}

bool IsVersion(std::string_view word) {
  // "ROCPRIM_400200_NS", "CUB_200500_700_NS"
  return word.ends_with("_NS") && std::any_of(word.begin(), word.end(), IsDigit);
}

/// "flashattnfwdsm90" -> "flashattnfwd".
std::string WithoutArchitecture(std::string name) {
  const size_t sm = name.rfind("sm");
  if (sm != std::string::npos && sm > 3 && sm + 2 < name.size() && IsDigits(std::string_view(name).substr(sm + 2)))
    name.resize(sm);
  return name;
}

/// What the first telling template argument is, and the next one where the first only says how many operands there
/// are; `library` when it is a library's made-up name.
std::string Functor(const Parts& parts, bool& library) {
  std::string out;
  for (const std::string_view word : parts.arguments) {
    if (SaysNothing(word) || IsVersion(word)) continue;
    const std::string lower = Lowered(word);
    if (lower.starts_with("cutlass_cudnn")) continue;  // a namespace
    if (IsLibraryName(lower) && out.empty()) {
      library = true;
      return LibraryName(word);
    }
    const std::string name = WithoutArchitecture(FunctorName(word));
    if (!out.empty()) return out + " " + name;
    out = name;
    if (!out.starts_with("binaryop") && !out.starts_with("unaryop") && !out.starts_with("pointwiseop")) break;
  }
  return out;
}

}  // namespace

std::string KernelName(std::string_view name) {
  name = name.substr(0, kMaxName);
  if (std::string nccl = name.starts_with("nccl") || name.starts_with("rccl") ? NcclName(name) : std::string();
      !nccl.empty())
    return nccl;
  if (name.starts_with("Cijk_")) return TensileName(name);
  // A return type whose brackets not every writer closes.
  if (const size_t type = name.find(">::type "); name.starts_with("std::enable_if") && type != std::string_view::npos)
    name.remove_prefix(type + 8);
  Parts parts = name.starts_with("_Z") ? OfMangled(name) : OfDemangled(name);
  if (parts.function.empty()) return WithoutNumbers(name);
  const std::string_view function = parts.function.back();
  const std::string lower = Lowered(function);
  if (IsLibraryName(lower)) return LibraryName(function);
  const bool qualified = parts.function.size() > 1 && !IsVersion(parts.function[parts.function.size() - 2]);
  const auto with_namespace = [&](std::string_view word) {
    return qualified ? std::string(parts.function[parts.function.size() - 2]) + "::" + std::string(word)
                     : std::string(word);
  };
  if (!RunsAnArgument(function))
    return PlainName(IsSingleWord(function) ? with_namespace(function) : std::string(function));
  bool library = false;
  std::string functor = Functor(parts, library);
  if (library) return functor;
  std::string out = FunctionName(function);
  // A function called "kernel" is known by where it stands.
  if (functor.empty()) return PlainName(with_namespace(out));
  return out + "[" + functor + "]";
}

}  // namespace teller::encode
