#include "inject/sim/layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inject/sim/host_ops.hpp"

namespace teller::inject::sim {

namespace {

constexpr int64_t kHidden = 4096;
constexpr int64_t kWidth = 12288;  // of the feed-forward part
constexpr int64_t kVocabulary = 151936;
constexpr int64_t kLayerBytes = 386'000'000;  // weights of one layer in 16 bits

std::string Quoted(std::string_view name) {
  return fmt::format("\"{}\"", name);
}

std::string KernelArgs(int registers, int shared, int grid, int block) {
  return fmt::format(
      ", \"registers per thread\": {}, \"shared memory\": {}, \"blocks per SM\": {:.6f}, \"warps per SM\": {:.6f}, "
      "\"grid\": [{}, 1, 1], "
      "\"block\": [{}, 1, 1], \"est. achieved occupancy %\": {}",
      registers, shared, grid / 132.0, grid * block / 32.0 / 132.0, grid, block,
      std::min(100, grid * block / 32 * 100 / 132 / 64));
}

struct Form {
  const char* kernel;
  const char* other;
  int grid;
  bool driver;
};

/// What each engine calls the role. The second kernel is what another version or autotuning result would choose.
Form FormOf(Role role, Engine engine) {
  const bool vllm = engine == Engine::kVllm;
  const bool sglang = engine == Engine::kSglang;
  const char* norm_kernel =
      vllm ? "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
             "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, c10::BFloat16*, c10::BFloat16 "
             "const*, float, int, int)"
      : sglang
          ? "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*, __nv_bfloat16*, "
            "__nv_bfloat16*, unsigned int, unsigned int, unsigned int, float, float)"
          : "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, true>(int, "
            "float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, c10::BFloat16*)";
  switch (role) {
    case Role::kEmbed:
      return {
          "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2, 2, "
          "-2, true>",
          "", 256, false};
    case Role::kNorm: return {norm_kernel, "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0", 64, false};
    case Role::kQkv: return {"nvjet_tst_128x64_64x9_2x1_v_bz_TNN", "nvjet_tst_64x32_64x16_1x2_h_bz_TNN", 96, true};
    case Role::kQkNorm:
      return {"void flashinfer::norm::QKRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*, __nv_bfloat16*)", "", 64,
              false};
    case Role::kRope:
      return {vllm     ? "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, "
                         "c10::BFloat16*, c10::BFloat16 const*, int, long, long, int, int, int)"
              : sglang ? "void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheEnhancedKernel<false, true, 128u, 8u, "
                         "16u, __nv_bfloat16, long>"
                       : "void at::native::elementwise_kernel<128, 4, "
                         "at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, "
                         "c10::BFloat16, at::native::binary_internal::MulFunctor<float> > >",
              "", 64, false};
    case Role::kKvStore:
      return {
          vllm ? "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>"
          : sglang ? "void (anonymous namespace)::store_kvcache<2048l, 4, false, long>((anonymous "
                     "namespace)::StoreKVCacheParams)"
                   : "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous "
                     "namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>",
          "", 64, false};
    case Role::kAttn:
      return {vllm     ? "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, "
                         "cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, cute::tuple<cute::C<128>, cute::C<128>, "
                         "cute::C<128> >, 128, cutlass::bfloat16_t> > >"
              : sglang ? "void "
                         "flashinfer::PrefillWithKVCacheKernel<flashinfer::CollectiveMainloop<flashinfer::"
                         "AttentionKernelTraits<true, 128, 128, 128, 96> > >"
                       : "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<128, 128, 64, 4, "
                         "false, false, cutlass::bfloat16_t> >",
              "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, "
              "cutlass::bfloat16_t> >",
              132, true};
    case Role::kProj: return {"nvjet_tst_64x64_64x16_2x1_v_bz_TNN", "nvjet_tst_32x64_64x16_4x1_v_bz_TNN", 64, true};
    case Role::kGateUp: return {"nvjet_tst_192x64_64x6_2x1_v_bz_TNN", "nvjet_tst_64x64_64x13_1x2_h_bz_TNN", 128, true};
    case Role::kAct:
      return {vllm ? "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 "
                     "vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 "
                     "const*, int)"
              : sglang
                  ? "void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &(float silu<float>(float const&))>"
                  : "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous "
                    "namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}>",
              "triton_poi_fused_mul_silu_1", 64, false};
    case Role::kDown:
      return {"nvjet_tst_128x64_64x8_2x2_h_bz_splitK_TNN", "nvjet_tst_64x16_64x16_4x1_v_bz_TNN", 64, true};
    case Role::kRoute:
      return {
          "void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, 32, int>(float const*, bool const*, float*, int, int*, "
          "int*, int, int, int)",
          "", 16, false};
    case Role::kExpertUp:
    case Role::kExpertDown:
      return {role == Role::kExpertUp ? "fused_moe_kernel" : "fused_moe_kernel_gptq_awq", "", 256, true};
    case Role::kHead: return {"nvjet_tst_256x64_64x4_2x1_v_bz_TNN", "", 594, true};
    case Role::kSample:
      return {
          "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, "
          "unsigned int, long, 4, 4> >",
          "", 16, false};
    case Role::kCopy:
      return {
          "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>",
          "", 8, false};
    case Role::kReduce:
      return {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "", 16, false};
    case Role::kGather: return {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "", 16, false};
    case Role::kLogits: return {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "", 16, false};
    case Role::kExchange: return {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "", 16, false};
    case Role::kPass: return {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "", 2, false};
  }
  return {};
}

Op Make(Role role, int layer, Engine engine) {
  const Form form = FormOf(role, engine);
  Op op;
  op.role = role;
  op.layer = layer;
  AddHostWork(op, engine);
  op.name = form.kernel;
  const std::string args = IsCollective(role) || role == Role::kPass ? KernelArgs(96, 82240, form.grid, 544)
                                                                     : KernelArgs(168, 98304, form.grid, 256);
  op.text = {Quoted(form.kernel), args};
  op.other = {Quoted(*form.other == 0 ? form.kernel : form.other), args};
  op.driver = form.driver;
  return op;
}

}  // namespace

const char* Name(Engine engine) {
  switch (engine) {
    case Engine::kVllm: return "vllm";
    case Engine::kSglang: return "sglang";
    default: return "fsdp";
  }
}

bool IsCollective(Role role) {
  return role == Role::kReduce || role == Role::kGather || role == Role::kExchange || role == Role::kLogits;
}

std::string PlaceOf(const Layout& layout, int rank, char mark) {
  std::string place;
  if (layout.replicas() > 1) place += fmt::format("{}DP{}", mark, layout.replica(rank));
  if (layout.stages > 1) place += fmt::format("{}PP{}", mark, layout.stage(rank));
  if (layout.parts > 1) place += fmt::format("{}TP{}", mark, rank % layout.parts);
  return place;
}

std::vector<Op> Program(const Layout& layout) {
  std::vector<Op> ops;
  int stage = 0;
  const auto add = [&](Role role, int layer) {
    const std::vector<Piece>& pieces = Pieces(role, layout.engine);
    ops.push_back(Make(role, layer, layout.engine));
    ops.back().stage = stage;
    for (size_t k = 0; k < pieces.size(); ++k) {
      if (k > 0) ops.push_back(Make(role, layer, layout.engine));
      ops.back().stage = stage;
      ops.back().piece = static_cast<int>(k);
      BecomePiece(ops.back(), pieces[k]);
    }
  };
  // Two tensors go to the next stage: the hidden states and what is added to them.
  const auto pass = [&] {
    for (int tensor = 0; tensor < 2; ++tensor) {
      for (const bool receives : {false, true}) {
        ops.push_back(Make(Role::kPass, -1, layout.engine));
        ops.back().stage = stage;
        ops.back().receives = receives;
        ops.back().last = tensor == 1;
        if (receives) ops.back().path = {Quoted("c10d::recv_")};
      }
    }
    ++stage;
  };
  const bool sharded = layout.engine == Engine::kFsdp;
  const bool cut = !sharded && layout.parts > 1;
  add(Role::kEmbed, -1);
  if (cut) add(Role::kReduce, -1);
  for (int layer = 0; layer < layout.layers; ++layer) {
    if (layout.stage_of_layer(layer) > stage) pass();
    // A layer's weights are gathered one layer ahead.
    if (sharded && layout.ranks > 1) {
      if (layer == 0) add(Role::kGather, 0);
      if (layer + 1 < layout.layers) add(Role::kGather, layer + 1);
    }
    for (const Role role : {Role::kNorm, Role::kQkv, Role::kRope, Role::kKvStore, Role::kAttn, Role::kProj})
      add(role, layer);
    if (cut) add(Role::kReduce, layer);
    add(Role::kNorm, layer);
    if (layout.experts) {
      add(Role::kRoute, layer);
      if (layout.ranks > 1) add(Role::kExchange, layer);
      for (const Role role : {Role::kExpertUp, Role::kAct, Role::kExpertDown}) add(role, layer);
      if (layout.ranks > 1) add(Role::kExchange, layer);
    } else {
      for (const Role role : {Role::kGateUp, Role::kAct, Role::kDown}) add(role, layer);
      if (cut) add(Role::kReduce, layer);
    }
  }
  add(Role::kNorm, -1);
  add(Role::kHead, -1);
  if (cut) add(Role::kLogits, -1);
  add(Role::kSample, -1);
  return ops;
}

std::vector<Op> DraftProgram(const Layout& layout) {
  Layout small = layout;
  small.layers = 1;
  small.experts = false;
  return Program(small);
}

Op Barrier(const Layout& layout) {
  return Make(Role::kReduce, -1, layout.engine);
}

int64_t Bytes(Role role, const Layout& layout, const Shape& shape) {
  switch (role) {
    case Role::kReduce: return shape.tokens * kHidden * 2;
    case Role::kLogits: return shape.sequences * kVocabulary / layout.parts * 2;
    case Role::kGather: return kLayerBytes / layout.ranks / 8;  // a small model: one eighth of the tables' layer
    case Role::kExchange: return shape.tokens * kHidden * 2 / layout.parts;
    case Role::kPass: return shape.tokens * kHidden * 2;
    default: return 0;
  }
}

std::vector<std::vector<int64_t>> Dims(Role role, const Layout& layout, const Shape& shape) {
  const int64_t n = shape.tokens;
  const int parts = layout.engine == Engine::kFsdp ? 1 : layout.parts;
  switch (role) {
    case Role::kEmbed: return {{kVocabulary / parts, kHidden}, {n}};
    case Role::kQkv: return {{n, kHidden}, {kHidden, 6144 / parts}};
    case Role::kProj: return {{n, kHidden / parts}, {kHidden / parts, kHidden}};
    case Role::kGateUp: return {{n, kHidden}, {kHidden, 2 * kWidth / parts}};
    case Role::kDown: return {{n, kWidth / parts}, {kWidth / parts, kHidden}};
    case Role::kAct: return {{n, 2 * kWidth / parts}};
    case Role::kAttn: return {{n, 32 / parts, 128}, {n, 8 / std::min(parts, 8), 128}};
    case Role::kHead: return {{shape.sequences, kHidden}, {kHidden, kVocabulary / parts}};
    case Role::kSample: return {{shape.sequences, kVocabulary}};
    case Role::kLogits: return {{shape.sequences, kVocabulary / parts}};
    case Role::kGather: return {{Bytes(role, layout, shape) / 2}};
    default: return {{n, kHidden}};
  }
}

std::string CollectiveArgs(Role role, bool receives, const Layout& layout, const Shape& shape,
                           const std::vector<int>& group, const char* group_name) {
  const int64_t in = Bytes(role, layout, shape) / 2;
  const int64_t size = static_cast<int64_t>(group.size());
  const char* name = role == Role::kReduce     ? "allreduce"
                     : role == Role::kExchange ? "all_to_allv"
                     : role == Role::kPass     ? (receives ? "recv" : "send")
                                               : "_allgather_base";
  // The profiler cuts long lists of ranks.
  std::string ranks =
      group.size() <= 30
          ? fmt::format("[{}]", fmt::join(group, ", "))
          : fmt::format("[{}, ..., {}]", fmt::join(group.begin(), group.begin() + 28, ", "), group.back());
  return fmt::format(
      ", \"Collective name\": \"{}\", \"In msg nelems\": {}, \"Out msg nelems\": {}, \"Group size\": {}, \"dtype\": "
      "\"BFloat16\", \"In split "
      "size\": \"[]\", \"Out split size\": \"[]\", \"Process Group Name\": \"{}\", \"Process Group Description\": "
      "\"undefined\", \"Process Group "
      "Ranks\": \"{}\"",
      name, in, role == Role::kGather || role == Role::kLogits ? in * size : in, size, group_name, ranks);
}

}  // namespace teller::inject::sim
