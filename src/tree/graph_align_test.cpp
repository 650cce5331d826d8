#include "tree/graph_align.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/rng.hpp"

namespace teller::tree {
namespace {

GraphToken Token(uint32_t name, uint32_t place = 0) {
  return {.work = KernelClass::kUnknown, .name = name, .family = name, .stem = name, .place = place};
}

std::vector<GraphToken> Random(base::Rng& rng, size_t n, uint32_t names) {
  std::vector<GraphToken> out;
  for (size_t i = 0; i < n; ++i)
    out.push_back(Token(1 + static_cast<uint32_t>(rng.Below(names)), static_cast<uint32_t>(i + 1)));
  return out;
}

/// `tokens` with some left out and some inserted; `origin` = where each came from, -1 = inserted.
std::vector<GraphToken> Changed(base::Rng& rng, const std::vector<GraphToken>& tokens, uint64_t percent,
                                std::vector<int>& origin) {
  std::vector<GraphToken> out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (rng.Below(100) < percent) continue;
    if (rng.Below(100) < percent) {
      out.push_back(Token(1'000'000));
      origin.push_back(-1);
    }
    out.push_back(tokens[i]);
    origin.push_back(static_cast<int>(i));
  }
  return out;
}

void ExpectOrdered(const Alignment& alignment, size_t n, size_t m) {
  for (size_t p = 0; p < alignment.pairs.size(); ++p) {
    EXPECT_LT(alignment.pairs[p].replay, n);
    EXPECT_LT(alignment.pairs[p].reference, m);
    EXPECT_GE(alignment.pairs[p].margin, 0);
    if (p == 0) continue;
    EXPECT_LT(alignment.pairs[p - 1].replay, alignment.pairs[p].replay);
    EXPECT_LT(alignment.pairs[p - 1].reference, alignment.pairs[p].reference);
  }
}

TEST(Align, SafePairsOfRandomSequencesAreRight) {
  base::Rng rng(3);
  size_t safe = 0, wrong = 0, from_reference = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const auto reference = Random(rng, 20 + rng.Below(200), 3 + static_cast<uint32_t>(rng.Below(40)));
    std::vector<int> origin;
    const auto replay = Changed(rng, reference, 6, origin);
    const auto alignment = Align(replay, reference, {});
    ExpectOrdered(alignment, replay.size(), reference.size());
    for (const int o : origin) from_reference += o >= 0;
    for (const AlignedPair& pair : alignment.pairs) {
      if (pair.margin < kSafeMargin || pair.agreement == Agreement::kNone) continue;
      ++safe;
      wrong += origin[pair.replay] != static_cast<int>(pair.reference);
    }
  }
  EXPECT_GE(static_cast<double>(safe), 0.8 * static_cast<double>(from_reference));
  EXPECT_LE(static_cast<double>(wrong), 0.002 * static_cast<double>(safe));
}

/// Swapping the sides changes nothing about how well they agree.
TEST(Align, TheScoreIsSymmetric) {
  base::Rng rng(5);
  for (int trial = 0; trial < 100; ++trial) {
    const auto a = Random(rng, 1 + rng.Below(60), 6);
    const auto b = Random(rng, 1 + rng.Below(60), 6);
    EXPECT_EQ(Align(a, b, {}).score, Align(b, a, {}).score);
  }
}

TEST(Align, ABandGivesWhatTheWholeTableGives) {
  base::Rng rng(9);
  for (int trial = 0; trial < 20; ++trial) {
    const auto reference = Random(rng, 400, 50);
    std::vector<int> origin;
    const auto replay = Changed(rng, reference, 4, origin);
    const auto whole = Align(replay, reference, {});
    const auto banded = Align(replay, reference, {.max_cells = 400 * 120});
    EXPECT_FALSE(whole.banded);
    EXPECT_TRUE(banded.banded);
    EXPECT_EQ(banded.score, whole.score);
    EXPECT_EQ(banded.agreeing, whole.agreeing);
  }
}

/// A graph inside of a long step is found although the band is far narrower than what stands before it.
TEST(Align, ABandFollowsTheCommonDiagonal) {
  base::Rng rng(13);
  const auto graph = Random(rng, 500, 400);
  auto step = Random(rng, 900, 400);
  for (auto& token : step) token = Token(token.name + 5000, token.place + 5000);
  step.insert(step.begin() + 800, graph.begin(), graph.end());
  const auto alignment = Align(graph, step, {.open_ends = true, .max_cells = 500 * 100});
  EXPECT_TRUE(alignment.banded);
  EXPECT_EQ(alignment.agreeing, 500u);
  for (const AlignedPair& pair : alignment.pairs) EXPECT_EQ(pair.reference, pair.replay + 800);
}

TEST(Align, NothingAndSingleElements) {
  EXPECT_TRUE(Align({}, {}, {}).pairs.empty());
  EXPECT_TRUE(Align({Token(1)}, {}, {}).pairs.empty());
  EXPECT_EQ(Align({Token(1)}, {Token(1)}, {}).agreeing, 1u);
  EXPECT_EQ(Align({Token(1)}, {Token(2)}, {}).agreeing, 0u);
  EXPECT_TRUE(Align({Token(1)}, Random(*std::make_unique<base::Rng>(1), 100, 3), {.open_ends = true, .max_cells = 1})
                  .pairs.size() <= 1);
}

TEST(Align, ACopyIsNeverPairedWithAKernel) {
  GraphToken copy = Token(7);
  copy.kind = trace::SpanKind::kCopy;
  const auto alignment = Align({Token(1), copy, Token(2)}, {Token(1), Token(7), Token(2)}, {});
  for (const AlignedPair& pair : alignment.pairs) EXPECT_NE(pair.replay, 1u);
  EXPECT_EQ(alignment.agreeing, 2u);
}

TEST(KernelName, ClassesOfManyLibraries) {
  const std::pair<const char*, KernelClass> cases[] = {
      {"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x256_MI16x16x1_SN", KernelClass::kGemm},
      {"nvjet_tst_128x64_64x9_1x2_h_bz_TNN", KernelClass::kGemm},
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64", KernelClass::kGemm},
      {"void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16>", KernelClass::kGemm},
      {"_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256E", KernelClass::kNorm},
      {"_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelIN", KernelClass::kAttention},
      {"void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128>>(Flash_fwd_params)", KernelClass::kAttention},
      {"void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", KernelClass::kRotary},
      {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", KernelClass::kCollective},
      {"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>", KernelClass::kCollective},
      {"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>", KernelClass::kCacheWrite},
      {"triton_poi_fused_3", KernelClass::kUnknown},
      {"", KernelClass::kUnknown},
  };
  for (const auto& [name, kind] : cases) EXPECT_EQ(ClassOfName(name), kind) << name;
}

TEST(KernelName, FamiliesLeaveNumbersOutAndStemsArguments) {
  EXPECT_EQ(FamilyOfName("gemm_128x64_v2"), "gemm_#x#_v#");
  EXPECT_EQ(FamilyOfName("triton_poi_fused_add_12"), FamilyOfName("triton_poi_fused_add_7"));
  EXPECT_EQ(StemOfName("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, 4>(float*)"),
            "at::native::CatArrayBatchedCopy");
  EXPECT_EQ(StemOfName("_ZN5aiter24add_rmsnorm_quant_kernelIDF16b"), "aiter::add_rmsnorm_quant_kernel");
  EXPECT_EQ(StemOfName("Cijk_Alik_Bljk_BBS_BH_MT64x32x256_MI16"), StemOfName("Cijk_Alik_Bljk_BBS_BH_MT16x16x512_MI16"));
  // Damaged lengths do not run past the end.
  for (const char* name : {"_ZN", "_ZN99abc", "_ZN99999999999999999999999a", "_Z0", "_ZN0a", "_Z3ab"})
    EXPECT_NO_THROW(StemOfName(name));
}

}  // namespace
}  // namespace teller::tree
