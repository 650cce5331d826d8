#include "encode/range_symbol.hpp"

#include <algorithm>
#include <array>

#include "encode/kernel_symbol.hpp"
#include "encode/name_text.hpp"
#include "tree/collectives.hpp"
#include "tree/module_path.hpp"
#include "tree/step_name.hpp"

namespace teller::encode {

namespace {

constexpr std::string_view kModule = "nn.Module: ";

/// Packages whose sources are run from checkouts, so that nothing in the path but their name tells where they begin.
constexpr std::array<std::string_view, 34> kPackages = {"vllm",         "sglang",       "torch",
                                                        "torchvision",  "transformers", "triton",
                                                        "tensorrt_llm", "flashinfer",   "aiter",
                                                        "xfuser",       "diffusers",    "deepspeed",
                                                        "megatron",     "apex",         "xformers",
                                                        "lmdeploy",     "lightllm",     "mlc_llm",
                                                        "llama_cpp",    "ray",          "numpy",
                                                        "accelerate",   "bitsandbytes", "flash_attn",
                                                        "sgl_kernel",   "vllm_ascend",  "text_generation_server",
                                                        "fairscale",    "jax",          "tensorflow",
                                                        "uvicorn",      "fastapi",      "nixl",
                                                        "lmcache"};

/// Folders below which packages lie.
constexpr std::array<std::string_view, 2> kSites = {"site-packages/", "dist-packages/"};

bool IsPackage(std::string_view part) {
  return std::find(kPackages.begin(), kPackages.end(), part) != kPackages.end();
}

/// Where an absolute path's package begins; its last part when nothing tells.
std::string_view WithoutInstall(std::string_view path) {
  for (const std::string_view site : kSites) {
    if (const size_t at = path.rfind(site); at != std::string_view::npos) return path.substr(at + site.size());
  }
  const bool absolute = path.starts_with('/') || (path.size() > 2 && path[1] == ':');
  if (!absolute) return path;
  // The standard library: ".../lib/python3.11/asyncio/tasks.py".
  if (const size_t lib = path.rfind("/python3."); lib != std::string_view::npos) {
    const size_t next = path.find('/', lib + 1);
    if (next != std::string_view::npos) return path.substr(next + 1);
  }
  size_t package = std::string_view::npos;
  for (size_t at = 0; at < path.size();) {
    const size_t end = path.find_first_of("/\\", at);
    if (end == std::string_view::npos) break;
    if (IsPackage(path.substr(at, end - at))) package = at;
    at = end + 1;
  }
  if (package != std::string_view::npos) return path.substr(package);
  const size_t last = path.find_last_of("/\\");
  return last == std::string_view::npos ? path : path.substr(last + 1);
}

/// "<frozen importlib._bootstrap>" -> "importlib/_bootstrap.py".
std::string Unfrozen(std::string_view inside) {
  std::string out(inside);
  std::replace(out.begin(), out.end(), '.', '/');
  return out + ".py";
}

/// "<built-in method add of Tensor object at 0x7f..>" -> "<built-in method add of Tensor>".
std::string BuiltIn(std::string_view name) {
  const size_t of = name.find(" of ");
  if (of == std::string_view::npos) return WithoutNumbers(name);
  std::string_view type = name.substr(of + 4);
  if (const size_t object = type.find(" object"); object != std::string_view::npos) type = type.substr(0, object);
  while (type.ends_with('>')) type.remove_suffix(1);
  // What pybind11 calls its functions' type depends on its release.
  if (type == "PyCapsule" || type.starts_with("pybind11")) type = "pybind11";
  return std::string(name.substr(0, of)) + " of " + std::string(type) + ">";
}

/// "torch_dynamo_resume_in_forward_at_123", "__compiled_fn_3", "triton_poi_fused_add_12".
std::string FunctionOfFrame(std::string_view function) {
  for (const std::string_view generated : {"torch_dynamo_resume_in_", "__compiled_fn", "triton_", "__resume_at"}) {
    if (!function.starts_with(generated)) continue;
    std::string out = WithoutNumbers(function);
    while (out.ends_with("_#")) out.resize(out.size() - 2);
    return out;
  }
  return std::string(function);
}

std::string FileOfFrame(std::string_view file) {
  if (file.starts_with("<frozen ") && file.ends_with('>')) return Unfrozen(file.substr(8, file.size() - 9));
  if (file.starts_with('<')) {
    std::string out = WithoutNumbers(file);
    while (out.ends_with(".#")) out.resize(out.size() - 2);
    return out;
  }
  const std::string_view path = WithoutInstall(file);
  const size_t slash = path.find_last_of("/\\");
  const std::string_view stem = slash == std::string_view::npos ? path : path.substr(slash + 1);
  // Files that a compiler wrote are called by a hash, in folders by its first letters.
  const std::string plain = WithoutNumbers(stem);
  if (plain != stem && plain.starts_with('#')) return "<generated>.py";
  std::string out(path);
  std::replace(out.begin(), out.end(), '\\', '/');
  return out;
}

/// "add_12" -> "add".
std::string_view WithoutIndex(std::string_view name) {
  std::string_view stem = name;
  while (!stem.empty() && IsDigit(stem.back())) stem.remove_suffix(1);
  if (stem.size() == name.size() || !stem.ends_with('_')) return name;
  stem.remove_suffix(1);
  return stem.empty() ? name : stem;
}

/// The operator of an NVTX range that PyTorch writes ("aten::mul, seq = 46174, op_id = 993406"), or nothing.
std::string_view EmittedOp(std::string_view name) {
  size_t end = std::string_view::npos;
  for (const std::string_view key : {", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = "}) {
    end = std::min(end, name.find(key));
  }
  return end == std::string_view::npos ? std::string_view() : name.substr(0, end);
}

/// Engines' marks of one step, whatever the batch.
std::string StepMarkName(std::string_view name) {
  const auto mark = tree::ReadStepName(name);
  if (!mark) return {};
  switch (mark->mark) {
    case tree::StepMark::kSglang:
    case tree::StepMark::kVllm: return "step " + std::string(trace::Name(mark->kind));
    case tree::StepMark::kProfilerStep: return "ProfilerStep";
    default: return {};
  }
}

/// Ranges that the profiler of old releases files under the operators.
bool IsRange(std::string_view name) {
  return name.starts_with("ProfilerStep#") || name.starts_with("Optimizer.") ||
         name.starts_with("enumerate(DataLoader)");
}

/// "{'Module': 'model.layers.0.mlp', ...}", as layer-wise NVTX ranges of engines are written.
std::string_view ModuleOfMarker(std::string_view name) {
  constexpr std::string_view kKey = "'Module': '";
  if (!name.starts_with('{')) return {};
  const size_t at = name.find(kKey);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = name.substr(at + kKey.size());
  return rest.substr(0, rest.find('\''));
}

}  // namespace

Symbol FrameSymbol(std::string_view name) {
  if (name.starts_with(kModule)) {
    name.remove_prefix(kModule.size());
    return {Layer::kModule, std::string(WithoutIndex(name))};
  }
  if (name.starts_with("<built-in")) return {Layer::kPython, BuiltIn(name)};
  // "file(line): function"; files may hold brackets themselves.
  const size_t colon = name.rfind("): ");
  const size_t bracket = colon == std::string_view::npos ? colon : name.rfind('(', colon);
  if (bracket == std::string_view::npos) return {Layer::kPython, WithoutNumbers(name)};
  return {Layer::kPython, FileOfFrame(name.substr(0, bracket)) + ": " + FunctionOfFrame(name.substr(colon + 3))};
}

Symbol OpSymbol(std::string_view name) {
  if (IsRange(name)) return RangeSymbol(name, Layer::kAnnotation);
  if (const std::string_view emitted = EmittedOp(name); !emitted.empty()) name = emitted;
  std::string text(name);
  if (name.starts_with("triton_") || name.starts_with("sglang_profiler::")) {
    text = std::string(WithoutIndex(name));
  } else if (name.ends_with("Backward0")) {
    text.pop_back();  // the first overload; before it had others it had no number
  } else if (const size_t region = name.find(": ");
             region != std::string_view::npos && !name.starts_with("autograd::")) {
    text = WithoutNumbers(name);
  }
  return {tree::IsCommunicationName(name) || name == "record_param_comms" ? Layer::kComm : Layer::kOp, std::move(text)};
}

Symbol RangeSymbol(std::string_view name, Layer layer) {
  if (std::string step = StepMarkName(name); !step.empty()) return {layer, std::move(step)};
  if (const std::string_view emitted = EmittedOp(name); !emitted.empty()) return OpSymbol(emitted);
  if (const std::string_view module = ModuleOfMarker(name); !module.empty())
    return {Layer::kModule, WithoutNumbers(module)};
  if (tree::IsDottedPath(name)) return {Layer::kModule, WithoutNumbers(name)};
  if (tree::IsCommunicationName(name)) return {Layer::kComm, WithoutNumbers(name)};
  return {layer, WithoutNumbers(name)};
}

std::string ApiName(std::string_view name) {
  for (bool cut = true; cut;) {
    cut = false;
    const size_t at = name.rfind('_');
    const std::string_view tail = at == std::string_view::npos ? std::string_view() : name.substr(at + 1);
    const bool version = tail.size() > 1 && tail.front() == 'v' && std::all_of(tail.begin() + 1, tail.end(), IsDigit);
    if (version || tail == "ptsz" || tail == "ptds") {
      name = name.substr(0, at);
      cut = true;
    }
  }
  // HIP writes the release into the name: "hipGetDevicePropertiesR0600".
  if (const size_t at = name.rfind('R');
      at != std::string_view::npos && at + 5 == name.size() &&
      std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at) + 1, name.end(), IsDigit))
    name = name.substr(0, at);
  return std::string(name);
}

}  // namespace teller::encode
