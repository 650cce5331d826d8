#include "inject/sim/host_ops.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

namespace teller::inject::sim {

namespace {

/// Names with '>' between operators in one another and ';' between neighbours.
struct Around {
  const char* path = "";    ///< operators from the outermost to the one that launches
  const char* before = "";  ///< done before it
  const char* inside = "";  ///< done inside of the outermost
  int attributes = 0;       ///< questions about the kernel before it is launched
  bool captures = false;    ///< asks whether the stream is captured, as the allocator does
};

bool IsProduct(Role role) {
  return role == Role::kQkv || role == Role::kProj || role == Role::kGateUp || role == Role::kDown ||
         role == Role::kHead;
}

Around Vllm(Role role) {
  switch (role) {
    case Role::kEmbed:
      return {"aten::embedding>aten::index_select", "aten::slice>aten::as_strided", "aten::empty", 0, true};
    case Role::kNorm: return {"_C::fused_add_rms_norm", "", "", 0, false};
    case Role::kQkNorm: return {"_C::rms_norm", "aten::view", "aten::empty", 0, false};
    case Role::kRope:
      return {"_C::rotary_embedding", "aten::split_with_sizes>aten::as_strided;aten::flatten>aten::view", "", 0, false};
    case Role::kKvStore:
      return {"vllm::unified_kv_cache_update>_C_cache_ops::reshape_and_cache_flash",
              "aten::view;aten::view;aten::unbind>aten::select>aten::as_strided", "", 0, false};
    case Role::kAttn:
      return {"vllm::unified_attention_with_output", "aten::view;aten::empty",
              "aten::slice>aten::as_strided;aten::slice>aten::as_strided;aten::slice>aten::as_strided;aten::view", 1,
              true};
    case Role::kAct: return {"_C::silu_and_mul", "aten::empty", "", 0, false};
    case Role::kRoute: return {"_moe_C::topk_softmax", "aten::empty;aten::empty;aten::empty", "", 0, false};
    case Role::kExpertUp:
    case Role::kExpertDown:
      return {"vllm::moe_forward", "aten::view", "aten::empty;aten::empty;aten::slice>aten::as_strided", 4, false};
    case Role::kReduce:
      return {"vllm::all_reduce>c10d::allreduce_", "aten::view", "aten::empty_like>aten::empty_strided", 0, true};
    case Role::kLogits:
      return {"vllm::all_gather>c10d::_allgather_base_", "aten::view", "aten::empty;aten::reshape>aten::view", 0, true};
    default: return {};
  }
}

Around Sglang(Role role) {
  switch (role) {
    case Role::kEmbed:
      return {"aten::embedding>aten::index_select", "aten::to;aten::slice>aten::as_strided", "aten::empty", 0, true};
    case Role::kNorm: return {"sgl_kernel::fused_add_rmsnorm", "", "", 0, false};
    case Role::kQkNorm:
      return {"sgl_kernel::rmsnorm", "aten::reshape>aten::view", "aten::empty_like>aten::empty_strided", 0, false};
    case Role::kRope:
      return {"sgl_kernel::apply_rope_pos_ids_cos_sin_cache",
              "aten::split>aten::split_with_sizes>aten::as_strided;aten::view;aten::view", "aten::to", 0, false};
    case Role::kKvStore:
      return {"sglang::store_cache>aten::index_put_", "aten::view;aten::view;aten::alias", "", 0, false};
    case Role::kAttn:
      return {"sglang::unified_attention_with_output>aten::_flash_attention_forward",
              "aten::view;aten::empty_like>aten::empty_strided",
              "aten::contiguous;aten::view;aten::slice>aten::as_strided", 1, true};
    case Role::kAct: return {"sgl_kernel::silu_and_mul", "aten::empty", "", 0, false};
    case Role::kRoute: return {"sgl_kernel::topk_softmax", "aten::empty;aten::empty", "", 0, false};
    case Role::kExpertUp:
    case Role::kExpertDown:
      return {"sglang::fused_experts", "aten::view", "aten::empty;aten::slice>aten::as_strided", 4, false};
    case Role::kReduce:
      return {"sglang::inplace_all_reduce>c10d::allreduce_", "", "aten::empty_like>aten::empty_strided", 0, true};
    case Role::kLogits:
      return {"sglang::reg_all_gather_into_tensor>c10d::_allgather_base_", "aten::view", "aten::empty", 0, true};
    default: return {};
  }
}

Around Sharded(Role role) {
  switch (role) {
    case Role::kEmbed:
      return {"aten::embedding>aten::index_select", "aten::slice>aten::as_strided;aten::arange",
              "aten::empty;aten::reshape>aten::view", 0, true};
    case Role::kNorm:
      return {"aten::rms_norm", "aten::view", "aten::empty_like>aten::empty_strided;aten::empty", 0, true};
    case Role::kRope:
      return {"aten::mul", "aten::unsqueeze>aten::as_strided;aten::slice>aten::as_strided;aten::slice>aten::as_strided",
              "", 0, false};
    case Role::kKvStore:
      return {"aten::cat", "aten::transpose>aten::as_strided;aten::slice>aten::as_strided",
              "aten::narrow>aten::slice>aten::as_strided", 0, true};
    case Role::kAttn:
      return {
          "aten::scaled_dot_product_attention>aten::_scaled_dot_product_flash_attention>aten::_flash_attention_forward",
          "aten::transpose>aten::as_strided;aten::transpose>aten::as_strided;aten::view",
          "aten::transpose>aten::as_strided;aten::empty_like>aten::empty_strided", 1, true};
    case Role::kAct:
      return {"aten::silu", "aten::chunk>aten::split>aten::narrow>aten::slice>aten::as_strided", "", 0, false};
    case Role::kReduce: return {"c10d::barrier>c10d::allreduce_", "", "", 0, false};
    case Role::kGather:
      return {"c10d::_allgather_base_",
              "aten::empty;aten::split>aten::narrow>aten::slice>aten::as_strided;aten::detach>detach", "", 0, true};
    default: return {};
  }
}

Around Of(Role role, Engine engine) {
  if (IsProduct(role))
    return {"aten::linear>aten::matmul>aten::mm", engine == Engine::kFsdp ? "aten::view" : "aten::reshape>aten::view",
            "aten::t>aten::transpose>aten::as_strided;aten::reshape>aten::view", 3, false};
  if (role == Role::kSample) return {"aten::argmax", "aten::slice>aten::as_strided", "aten::empty", 0, true};
  if (role == Role::kPass) return {"c10d::send", "aten::contiguous", "", 0, false};
  if (role == Role::kExchange) return {"c10d::alltoall_base_", "aten::empty;aten::view", "", 0, true};
  if (engine == Engine::kVllm) return Vllm(role);
  return engine == Engine::kSglang ? Sglang(role) : Sharded(role);
}

std::vector<std::string> Split(std::string_view text, char mark) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(mark), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::vector<std::string> Path(std::string_view text) {
  std::vector<std::string> path = Split(text, '>');
  for (std::string& name : path) name = "\"" + name + "\"";
  return path;
}

std::vector<std::vector<std::string>> Paths(std::string_view text) {
  std::vector<std::vector<std::string>> paths;
  for (const std::string& part : Split(text, ';')) paths.push_back(Path(part));
  return paths;
}

}  // namespace

const std::vector<Piece>& Pieces(Role role, Engine engine) {
  static const std::vector<Piece> kNone;
  static const std::vector<Piece> kNormPieces = {
      {"aten::to>aten::_to_copy>aten::copy_",
       "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>"},
      {"aten::pow",
       "void at::native::vectorized_elementwise_kernel<4, at::native::pow_tensor_scalar_kernel_impl<float, float>>"},
      {"aten::mean",
       "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>, unsigned "
       "int, float, 4, 4> >"},
      {"aten::add", "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<float>>"},
      {"aten::rsqrt",
       "void at::native::vectorized_elementwise_kernel<4, at::native::rsqrt_kernel_cuda(at::TensorIteratorBase&)>"},
      {"aten::mul",
       "void at::native::elementwise_kernel<128, 4, "
       "at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<float, float, float, "
       "at::native::binary_internal::MulFunctor<float> > > >"},
      {"aten::to>aten::_to_copy>aten::copy_",
       "void at::native::vectorized_elementwise_kernel<4, "
       "at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)>"},
      {"aten::mul",
       "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, "
       "c10::BFloat16, at::native::binary_internal::MulFunctor<float> > >"}};
  static const std::vector<Piece> kRopePieces = {
      {"aten::mul",
       "void at::native::elementwise_kernel<128, 4, "
       "at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
       "at::native::binary_internal::MulFunctor<float> > > >"},
      {"aten::neg",
       "void at::native::elementwise_kernel<128, 4, "
       "at::native::gpu_kernel_impl_nocast<at::native::neg_kernel_cuda(at::TensorIteratorBase&)> >"},
      {"aten::cat",
       "void at::native::(anonymous namespace)::CatArrayBatchedCopy_aligned16_contig<at::native::(anonymous "
       "namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>"},
      {"aten::mul",
       "void at::native::elementwise_kernel<128, 4, "
       "at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
       "at::native::binary_internal::MulFunctor<float> > > >"},
      {"aten::add", "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>"}};
  static const std::vector<Piece> kActPieces = {
      {"aten::silu",
       "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous "
       "namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}>"},
      {"aten::mul",
       "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, "
       "c10::BFloat16, at::native::binary_internal::MulFunctor<float> > >"}};
  if (engine != Engine::kFsdp) return kNone;
  if (role == Role::kNorm) return kNormPieces;
  if (role == Role::kRope) return kRopePieces;
  return role == Role::kAct ? kActPieces : kNone;
}

void BecomePiece(Op& op, const Piece& piece) {
  if (op.piece > 0) op.before.clear();
  op.inside.clear();
  op.path = Path(piece.path);
  op.name = piece.kernel;
  op.text.name = "\"" + op.name + "\"";
}

void AddHostWork(Op& op, Engine engine) {
  const Around around = Of(op.role, engine);
  op.path = Path(around.path);
  op.before = Paths(around.before);
  op.inside = Paths(around.inside);
  if (around.captures) op.questions.push_back({"\"cudaStreamIsCapturing\"", 317});
  if (around.attributes > 1) op.questions.push_back({"\"cudaFuncGetAttributes\"", 15});
  for (int k = 0; k < around.attributes; ++k) op.questions.push_back({"\"cudaFuncSetAttribute\"", 273});
}

std::string InputMembers(const std::vector<std::vector<int64_t>>& dims) {
  std::string sizes;
  std::string strides;
  std::string types;
  std::string values;
  for (const std::vector<int64_t>& dim : dims) {
    const char* comma = sizes.empty() ? "" : ", ";
    std::vector<int64_t> stride(dim.size(), 1);
    for (size_t k = dim.size(); k-- > 1;) stride[k - 1] = stride[k] * dim[k];
    sizes += fmt::format("{}[{}]", comma, fmt::join(dim, ", "));
    strides += fmt::format("{}[{}]", comma, fmt::join(stride, ", "));
    types += fmt::format("{}\"{}\"", comma, dim.empty() ? "Scalar" : dim.size() == 1 ? "long int" : "c10::BFloat16");
    values += fmt::format("{}\"{}\"", comma, dim.empty() ? "False" : "");
  }
  return fmt::format("\"Concrete Inputs\": [{}], \"Input type\": [{}], \"Input Strides\": [{}], \"Input Dims\": [{}]",
                     values, types, strides, sizes);
}

}  // namespace teller::inject::sim
