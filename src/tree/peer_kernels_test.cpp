#include "tree/peer_kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.hpp"
#include "tree/collectives.hpp"

namespace teller::tree {
namespace {

using base::kMicro;
using base::kMilli;
using trace::Nanos;

/// A simulated program that all ranks run: layers of kernels on one stream a rank.
struct Program {
  int ranks = 4;
  int steps = 40;
  int layers = 4;
  double step_skew_us = 30;  ///< how far apart ranks start a step
  double kernel_noise = 0.1;
  double slower = 1;         ///< the last rank's kernels
  bool synchronizes = true;  ///< the last kernel of a layer waits for all ranks (of its set)
  int set = 0;               ///< ranks that synchronize with each other; 0: all
  bool dependent = false;    ///< the kernel after it starts when it starts (programmatic dependent launch)
  Nanos skew = 0;            ///< of the last rank's clock
  const char* reduce = "void mylib::fused_tail<__nv_bfloat16>(int)";
};

class Device {
 public:
  Device(const Program& program, uint64_t seed)
      : program_(program), rng_(seed), at_(static_cast<size_t>(program.ranks), 1e9) {
    store_.categories.push_back({"kernel", trace::SpanKind::kKernel});
    rows_.resize(at_.size());
    for (int s = 0; s < program.steps; ++s) {
      for (double& at : at_) at += 200e3 + 1e3 * program.step_skew_us * rng_.Unit();
      for (int layer = 0; layer < program.layers; ++layer) Layer();
    }
    for (int r = 0; r < program.ranks; ++r) Emit(r);
  }

  trace::Trees Match() {
    trace::Trees trees;
    MatchCollectives(store_, trees);
    return trees;
  }

 private:
  struct Row {
    double begin;
    double end;
    const char* name;
  };

  double Noise() { return 1 + program_.kernel_noise * (rng_.Unit() + rng_.Unit() - 1); }

  void Kernel(size_t r, const char* name, double us) {
    const double speed = r + 1 == at_.size() ? program_.slower : 1;
    const double end = at_[r] + us * 1e3 * speed * Noise();
    rows_[r].push_back({at_[r], end, name});
    at_[r] = end + 1e3;
  }

  void Layer() {
    for (size_t r = 0; r < at_.size(); ++r) {
      Kernel(r, "gemm_tn", 60);
      Kernel(r, "moe_combine_weights", 15);                 // its name hints, nothing else
      if (rng_.Unit() < 0.3) at_[r] += 20e3 * rng_.Unit();  // the host was slow to launch
      Kernel(r, "attention", 30 + 60 * rng_.Unit());
    }
    if (!program_.synchronizes) {
      for (size_t r = 0; r < at_.size(); ++r) Kernel(r, program_.reduce, 12);
      return;
    }
    const size_t size = program_.set > 0 ? static_cast<size_t>(program_.set) : at_.size();
    for (size_t first = 0; first < at_.size(); first += size) {
      double last = 0;
      for (size_t r = first; r < first + size; ++r) last = std::max(last, at_[r]);
      for (size_t r = first; r < first + size; ++r) {
        const double begin = at_[r];
        const double end = last + 12e3 + 800 * rng_.Unit();
        rows_[r].push_back({begin, end, program_.reduce});
        at_[r] = end + 1e3;
        if (!program_.dependent) continue;
        rows_[r].push_back({begin + 500, end + 9e3 * Noise(), "norm_quant"});
        at_[r] = end + 10e3;
      }
    }
  }

  void Emit(int r) {
    trace::Process process;
    process.file = trace::FileRow(0);
    process.rank = r;
    store_.processes.push_back(process);
    trace::Track track;
    track.process = trace::ProcessRow(static_cast<uint32_t>(r));
    track.is_stream = true;
    track.first_span = static_cast<uint32_t>(store_.spans.size());
    track.span_count = static_cast<uint32_t>(rows_[static_cast<size_t>(r)].size());
    const double shift = r + 1 == program_.ranks ? static_cast<double>(program_.skew) : 0;
    for (const Row& row : rows_[static_cast<size_t>(r)]) {
      const Nanos begin = std::llround(row.begin + shift);
      store_.spans.begin.push_back(begin);
      store_.spans.duration.push_back(std::llround(row.end + shift) - begin);
      store_.spans.name.push_back(store_.strings.Intern(row.name));
      store_.spans.track.push_back(trace::TrackRow(static_cast<uint32_t>(r)));
      store_.spans.category.push_back(0);
      store_.spans.parent.emplace_back();
      store_.spans.depth.push_back(0);
    }
    store_.tracks.push_back(track);
  }

  Program program_;
  base::Rng rng_;
  trace::Store store_;
  std::vector<double> at_;
  std::vector<std::vector<Row>> rows_;
};

TEST(PeerKernels, OneThatWaitsForAllRanksIsFoundByWhatItDoes) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Program program;
    program.ranks = 2 + static_cast<int>(seed % 7);
    const trace::Trees trees = Device(program, seed).Match();
    ASSERT_EQ(trees.collectives.size(), 160u) << seed;
    size_t named = 0;
    for (const auto& c : trees.collectives) {
      EXPECT_TRUE(c.inferred);
      ASSERT_EQ(c.members.size(), static_cast<size_t>(program.ranks));
      named += c.late_rank >= 0;
      for (const auto& m : c.members) {
        if (m.rank == c.late_rank) {
          EXPECT_EQ(m.wait, 0);
        }
      }
    }
    EXPECT_GT(named, 100u) << "who was late is known";
  }
}

TEST(PeerKernels, LockstepComputeIsNone) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Program program;
    program.ranks = 2 + static_cast<int>(seed % 7);
    program.synchronizes = false;
    program.step_skew_us = seed % 3 == 0 ? 0 : 3.0 * static_cast<double>(seed % 20);
    program.kernel_noise = 0.02 * static_cast<double>(seed % 10);
    program.slower = seed % 4 == 0 ? 1.3 : 1;
    program.reduce = seed % 2 == 0 ? "cross_device_reduce_1stage" : "elementwise";
    EXPECT_EQ(Device(program, seed).Match().collectives.size(), 0u) << seed << ": a name alone proves nothing";
  }
}

TEST(PeerKernels, ComputeAroundACollectiveIsNone) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    Program program;
    program.ranks = 2 + static_cast<int>(seed % 7);
    program.slower = seed % 3 == 0 ? 1.2 : 1;
    program.kernel_noise = 0.05 * static_cast<double>(seed % 5);
    program.reduce = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    for (const auto& c : Device(program, seed).Match().collectives) ASSERT_FALSE(c.inferred) << seed << c.group;
  }
}

TEST(PeerKernels, AKernelThatStartsInsideACollectiveIsNotOne) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Program program;
    program.dependent = true;
    program.reduce = "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<4>()";
    const trace::Trees trees = Device(program, seed).Match();
    EXPECT_EQ(trees.collectives.size(), 160u);
    for (const auto& c : trees.collectives) EXPECT_EQ(c.group, program.reduce);
  }
}

TEST(PeerKernels, SetsOfRanksThatSynchronizeAmongThemselvesAreToldApart) {
  Program program;
  program.ranks = 4;
  program.set = 2;
  const trace::Trees trees = Device(program, 3).Match();
  EXPECT_EQ(trees.collectives.size(), 320u);
  for (const auto& c : trees.collectives) {
    ASSERT_EQ(c.members.size(), 2u);
    EXPECT_EQ(c.members[0].rank / 2, c.members[1].rank / 2);
  }
}

TEST(PeerKernels, TheyCalibrateClocksWhereNothingElseDoes) {
  Program program;
  program.skew = 3 * base::kSecond;
  program.ranks = 3;
  const trace::Trees trees = Device(program, 4).Match();
  EXPECT_EQ(trees.clock_method, "collectives");
  EXPECT_NEAR(static_cast<double>(trees.clocks[2].offset - trees.clocks[0].offset), 3e9, 1e3);
}

TEST(PeerKernels, HintsAreOfKnownLibraries) {
  EXPECT_TRUE(HintsAtCommunication("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(...)"));
  EXPECT_TRUE(HintsAtCommunication("void deep_ep::internode_ll::dispatch<true, 3, 7168>(void*, float*)"));
  EXPECT_TRUE(HintsAtCommunication("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(...)"));
  EXPECT_FALSE(HintsAtCommunication("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n"));
}

}  // namespace
}  // namespace teller::tree
