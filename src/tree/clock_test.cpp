#include "tree/clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "base/rng.hpp"
#include "tree/line_fit.hpp"

namespace teller::tree {
namespace {

using base::kMicro;
using base::kMilli;
using base::kSecond;
using trace::Nanos;
using trace::ProcessClock;

constexpr Nanos kEpoch = 1'790'000'000 * kSecond;

/// What a simulated run is made of.
struct Plan {
  int ranks = 2;
  int collectives = 100;
  double most_skew = 20e9;     ///< ns; sizes are spread evenly over the decades from 1 us
  double most_drift = 100e-6;  ///< against the truth, either way
  double outliers = 0.02;      ///< chance that a rank leaves a collective late by 1 ms to 3 s
  double jitter = 3e3;         ///< scale of how late ranks leave
  bool one_sided = false;      ///< exponential jitter instead of normal
  double missing = 0;          ///< chance that the last rank takes no part
};

/// Ends of collectives of ranks whose clocks are known.
class Simulation {
 public:
  Simulation(const Plan& plan, uint64_t seed) : plan_(plan), rng_(seed) {
    for (int r = 0; r < plan.ranks; ++r) {
      const double size = std::pow(10, 3 + rng_.Unit() * std::max(0.0, std::log10(std::max(plan.most_skew, 1e3)) - 3));
      skew_.push_back(plan.most_skew > 0 ? std::round(rng_.Unit() < 0.5 ? size : -size) : 0);
      drift_.push_back(plan.most_drift * (2 * rng_.Unit() - 1));
    }
    double at = 0;
    for (int c = 0; c < plan.collectives; ++c) {
      at += 1e6 + 30e6 * rng_.Unit();
      CollectiveEnds ends;
      for (int r = 0; r < plan.ranks; ++r) {
        if (r + 1 == plan.ranks && rng_.Unit() < plan.missing) continue;
        double leave = at + (plan.one_sided ? -std::log(1 - rng_.Unit()) : Normal()) * plan.jitter;
        if (rng_.Unit() < plan.outliers) leave += std::pow(10, 6 + 3.5 * rng_.Unit());
        ends.members.push_back({static_cast<uint32_t>(r), Clock(r, leave)});
      }
      ends_.push_back(std::move(ends));
    }
  }

  std::vector<CollectiveEnds>& ends() { return ends_; }
  ClockFit Fit() const { return FitClocks(static_cast<size_t>(plan_.ranks), {}, ends_); }

  /// What rank r's clock shows at true time `at`.
  Nanos Clock(int r, double at) const {
    return kEpoch + std::llround(at + skew_[static_cast<size_t>(r)] + drift_[static_cast<size_t>(r)] * at);
  }

  /// Largest error of rank r against rank `base` over the window, after the correction: what the two clocks differ by
  /// when both show one true moment.
  double Error(const ClockFit& fit, int r, int base) const {
    const ProcessClock& clock = fit.clocks[static_cast<size_t>(r)];
    double most = 0;
    for (int k = 0; k <= 10; ++k) {
      const Nanos raw = clock.middle - clock.half_window + clock.half_window / 5 * k;
      const auto i = static_cast<size_t>(r);
      const double truth = (static_cast<double>(raw - kEpoch) - skew_[i]) / (1 + drift_[i]);
      const Nanos other = fit.clocks[static_cast<size_t>(base)].ToReference(Clock(base, truth));
      most = std::max(most, std::abs(static_cast<double>(clock.ToReference(raw) - other)));
    }
    return most;
  }

  int Reference(const ClockFit& fit) const {
    for (int r = 0; r < plan_.ranks; ++r) {
      if (fit.clocks[static_cast<size_t>(r)].linked && fit.clocks[static_cast<size_t>(r)].error == 0) return r;
    }
    return 0;
  }

 private:
  double Normal() { return std::sqrt(-2 * std::log(1 - rng_.Unit())) * std::cos(2 * M_PI * rng_.Unit()); }

  Plan plan_;
  base::Rng rng_;
  std::vector<double> skew_;
  std::vector<double> drift_;
  std::vector<CollectiveEnds> ends_;
};

double MedianOf(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// Trials of random plans. In each, the largest error of any rank at any time of its window stands against the bound.
struct Score {
  int held = 0;
  int linked = 0;
  double bound = 0;  ///< medians
  double error = 0;
};

Score Try(int trials, uint64_t seed, const std::function<void(Plan&, base::Rng&)>& vary) {
  Score score;
  std::vector<double> bounds;
  std::vector<double> errors;
  for (int t = 0; t < trials; ++t) {
    base::Rng rng(seed + static_cast<uint64_t>(t));
    Plan plan;
    plan.ranks = 2 + static_cast<int>(rng.Below(15));
    plan.collectives = 20 + static_cast<int>(rng.Below(481));
    plan.jitter = 1e3 + 9e3 * rng.Unit();
    plan.one_sided = rng.Unit() < 0.5;
    vary(plan, rng);
    const Simulation simulation(plan, rng.Next());
    const ClockFit fit = simulation.Fit();
    const int reference = simulation.Reference(fit);
    bool held = true;
    double worst = 0;
    double bound = 0;
    for (int r = 0; r < plan.ranks; ++r) {
      const auto& clock = fit.clocks[static_cast<size_t>(r)];
      score.linked += clock.linked;
      if (r == reference) continue;
      const double error = simulation.Error(fit, r, reference);
      held = held && clock.linked && error <= static_cast<double>(clock.error);
      worst = std::max(worst, error);
      bound = std::max(bound, static_cast<double>(clock.error));
      held = held && static_cast<double>(fit.error) >= static_cast<double>(clock.error);
    }
    score.held += held;
    bounds.push_back(bound);
    errors.push_back(worst);
  }
  score.bound = MedianOf(bounds);
  score.error = MedianOf(errors);
  std::printf("bound held in %d of %d trials; median bound %.0f ns, median largest error %.0f ns, %.2f times\n",
              score.held, trials, score.bound, score.error, score.bound / score.error);
  return score;
}

TEST(Clock, ABoundHoldsAndIsTight) {
  const Score score = Try(1000, 1, [](Plan&, base::Rng&) {});
  EXPECT_GE(score.held, 990);
  EXPECT_LE(score.bound, 3 * score.error);
}

TEST(Clock, ABoundHoldsForTwoRanks) {
  const Score score = Try(1000, 100'000, [](Plan& plan, base::Rng&) { plan.ranks = 2; });
  EXPECT_GE(score.held, 990);
  EXPECT_LE(score.bound, 3.5 * score.error) << "99 % of one normal error at two ends is 2.8 times its median already";
}

TEST(Clock, ABoundHoldsForFewCollectives) {
  const Score score = Try(1000, 200'000, [](Plan& plan, base::Rng& rng) {
    plan.collectives = 4 + static_cast<int>(rng.Below(16));
    plan.outliers = 0;
  });
  EXPECT_GE(score.held, 990);
}

TEST(Clock, ABoundHoldsWithoutDriftOrOutliers) {
  const Score score = Try(1000, 300'000, [](Plan& plan, base::Rng&) {
    plan.most_drift = 0;
    plan.outliers = 0;
  });
  EXPECT_GE(score.held, 990);
  EXPECT_LE(score.bound, 3 * score.error);
}

TEST(Clock, ABoundHoldsForARankThatIsMostlyAbsent) {
  const Score score = Try(300, 400'000, [](Plan& plan, base::Rng&) {
    plan.ranks = 4;
    plan.missing = 0.9;
    plan.collectives = 300;
  });
  EXPECT_GE(score.held, 297);
}

TEST(Clock, ClocksThatAgreeAreLeftAlone) {
  int corrected = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Plan plan;
    plan.ranks = 2 + static_cast<int>(seed % 7);
    plan.most_skew = 0;
    plan.most_drift = 0;
    const ClockFit fit = Simulation(plan, seed).Fit();
    corrected += fit.corrected > 0;
    EXPECT_EQ(fit.linked, static_cast<size_t>(plan.ranks));
    EXPECT_GT(fit.error, 0);
  }
  EXPECT_LE(corrected, 2) << "of 200 runs on one clock";
}

TEST(Clock, TooFewCollectivesProveNothing) {
  for (int n = 0; n <= 2; ++n) {
    Plan plan;
    plan.collectives = n;
    const ClockFit fit = Simulation(plan, 7).Fit();
    EXPECT_FALSE(fit.clocks[1].linked) << n;
    EXPECT_EQ(fit.corrected, 0u) << n;
  }
  Plan plan;
  plan.collectives = 3;
  plan.outliers = 0;
  const Simulation simulation(plan, 7);
  const ClockFit fit = simulation.Fit();
  ASSERT_TRUE(fit.clocks[1].linked);
  EXPECT_LE(simulation.Error(fit, 1, 0), static_cast<double>(fit.clocks[1].error));
}

TEST(Clock, LeavingAtRandomGivesAWideBoundOrNone) {
  int held = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Plan plan;
    plan.outliers = 1;
    const Simulation simulation(plan, seed);
    const ClockFit fit = simulation.Fit();
    held += !fit.clocks[1].linked || simulation.Error(fit, 1, 0) <= static_cast<double>(fit.clocks[1].error);
    EXPECT_TRUE(!fit.clocks[1].linked || fit.clocks[1].error > kMilli) << fit.clocks[1].error;
  }
  EXPECT_GE(held, 97);
}

TEST(Clock, CommunicatorsThatShareARankAreAChain) {
  int held = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Plan plan;
    plan.ranks = 6;
    plan.collectives = 120;
    Simulation simulation(plan, seed);
    for (size_t c = 0; c < simulation.ends().size(); ++c) {  // {0,1,2}, {2,3,4}, {4,5}
      const uint32_t first = c % 3 == 0 ? 0 : c % 3 == 1 ? 2 : 4;
      auto& members = simulation.ends()[c].members;
      std::erase_if(members, [&](const auto& m) { return m.process < first || m.process > first + 2; });
      simulation.ends()[c].kind = static_cast<uint32_t>(c % 3);
    }
    const ClockFit fit = simulation.Fit();
    const int reference = simulation.Reference(fit);
    bool all = fit.linked == 6;
    for (int r = 0; r < 6; ++r) {
      if (r != reference)
        all =
            all && simulation.Error(fit, r, reference) <= static_cast<double>(fit.clocks[static_cast<size_t>(r)].error);
    }
    held += all;
    EXPECT_GT(trace::PairError(fit.clocks, trace::ProcessRow(0), trace::ProcessRow(5)), 0);
  }

  EXPECT_GE(held, 990);
}

TEST(Clock, GroupsWithoutACommonRankStayApart) {
  Plan plan;
  plan.ranks = 4;
  Simulation simulation(plan, 3);
  for (size_t c = 0; c < simulation.ends().size(); ++c) {
    std::erase_if(simulation.ends()[c].members, [&](const auto& m) { return (m.process < 2) != (c % 2 == 0); });
  }
  const ClockFit fit = simulation.Fit();
  EXPECT_EQ(fit.linked, 2u);
  EXPECT_EQ(trace::PairError(fit.clocks, trace::ProcessRow(0), trace::ProcessRow(3)), trace::kUnknownClock);
}

TEST(Clock, SixtyFourRanksAndNoRankOrderMatters) {
  Plan plan;
  plan.ranks = 64;
  plan.collectives = 300;
  Simulation simulation(plan, 5);
  const ClockFit fit = simulation.Fit();
  EXPECT_EQ(fit.linked, 64u);
  int held = 0;
  for (int r = 1; r < 64; ++r)
    held += simulation.Error(fit, r, 0) <= static_cast<double>(fit.clocks[static_cast<size_t>(r)].error);
  EXPECT_EQ(held, 63);
  std::reverse(simulation.ends().begin(), simulation.ends().end());
  const ClockFit again = simulation.Fit();
  for (size_t r = 0; r < 64; ++r) {
    EXPECT_EQ(fit.clocks[r].offset, again.clocks[r].offset);
    EXPECT_EQ(fit.clocks[r].error, again.clocks[r].error);
  }
}

TEST(Clock, ProcessesOfOneHostShareAClockUnlessTheFitSaysNo) {
  Plan plan;
  plan.ranks = 4;
  plan.collectives = 200;
  plan.outliers = 0;
  plan.most_drift = 0;
  Simulation simulation(plan, 11);
  auto& ends = simulation.ends();
  for (auto& collective : ends) {  // ranks 0 and 1 are of one host, 2 and 3 claim to be
    collective.members[1].end = collective.members[0].end + 300;
  }
  const ClockFit fit = FitClocks(4, {"a", "a", "b", "b"}, ends);
  EXPECT_EQ(fit.clocks[0].domain, fit.clocks[1].domain);
  EXPECT_EQ(fit.clocks[0].offset, fit.clocks[1].offset);
  EXPECT_NE(fit.clocks[2].domain, fit.clocks[3].domain);
  ASSERT_EQ(fit.host_disagrees.size(), 1u);
  EXPECT_EQ(fit.host_disagrees[0], std::pair(2u, 3u));
}

TEST(Clock, HostileTimesDoNotOverflow) {
  std::vector<CollectiveEnds> ends;
  for (int i = 0; i < 50; ++i) {
    ends.push_back(
        {0, {{0, i % 2 == 0 ? INT64_MAX - i : INT64_MIN + 1 + i}, {1, i % 3 == 0 ? INT64_MIN + 1 : INT64_MAX - 5}}});
  }
  const ClockFit fit = FitClocks(2, {}, ends);
  for (const auto& clock : fit.clocks) {
    EXPECT_TRUE(std::isfinite(clock.drift));
    EXPECT_NE(clock.ToReference(INT64_MAX), trace::kNoTime);
    EXPECT_NE(clock.ToReference(INT64_MIN + 1), trace::kNoTime);
  }
}

TEST(LineFit, EqualPointsAreKnownToTheDigit) {
  std::vector<ClockPoint> points;
  for (int i = 0; i < 40; ++i) points.push_back({1e6 * i, 5'000'000, 0});
  const LineFit fit = FitLine(points, 0.005);
  ASSERT_TRUE(fit.ok);
  EXPECT_DOUBLE_EQ(fit.level, 5'000'000);
  EXPECT_LE(fit.ErrorAt(0), 10);
}

TEST(LineFit, WholeMicrosecondsAreNoOutliers) {
  base::Rng rng(3);
  std::vector<ClockPoint> points;
  for (int i = 0; i < 200; ++i)
    points.push_back({1e6 * i, rng.Unit() < 0.7 ? 0.0 : rng.Unit() < 0.5 ? 1000.0 : -1000.0, 0});
  const LineFit fit = FitLine(points, 0.005);
  ASSERT_TRUE(fit.ok);
  EXPECT_EQ(fit.used, 200u);
  EXPECT_GT(fit.ErrorAt(0), 50);
}

TEST(LineFit, SortsThatLeaveDifferentlyWidenTheError) {
  base::Rng rng(4);
  std::vector<ClockPoint> alike;
  std::vector<ClockPoint> apart;
  for (int i = 0; i < 200; ++i) {
    const double noise = 1000 * (rng.Unit() - 0.5);
    alike.push_back({1e6 * i, noise, static_cast<uint32_t>(i % 2)});
    apart.push_back({1e6 * i, noise + (i % 2 == 0 ? 3000 : -3000), static_cast<uint32_t>(i % 2)});
  }
  EXPECT_LT(FitLine(alike, 0.005).ErrorAt(1e8), 300);
  EXPECT_GT(FitLine(apart, 0.005).ErrorAt(1e8), 3000);
}

/// Rank 1 on host "b" was 7 s ahead and was corrected; rank 0 on host "a" is the reference.
struct Shifted {
  trace::Store store;
  std::vector<ProcessClock> clocks{2};

  Shifted() {
    store.files.resize(3);
    for (const int rank : {0, 1})
      store.processes.push_back({.file = trace::FileRow(static_cast<uint32_t>(rank)),
                                 .pid = std::to_string(100 + rank),
                                 .name = "Worker_TP" + std::to_string(rank),
                                 .rank = rank,
                                 .host = rank == 0 ? "a" : "b"});
    clocks[1].linked = clocks[1].corrected = true;
    clocks[1].middle = kEpoch;
    clocks[1].offset = 7 * kSecond;
  }

  /// Where a request of a service process lies after the shift: 0 = where it was.
  Nanos RequestOf(const std::string& pid, const std::string& name, const std::string& host) {
    store.processes.push_back({.file = trace::FileRow(2), .pid = pid, .name = name, .host = host, .service = true});
    store.tracks.push_back({.process = trace::ProcessRow(static_cast<uint32_t>(store.processes.size() - 1)),
                            .first_span = 0,
                            .span_count = 1});
    store.spans.begin.push_back(kEpoch);
    store.spans.duration.push_back(kSecond);
    trace::RequestRecord record{
        .file = trace::FileRow(2), .process = name, .arrival = kEpoch, .finished = kEpoch + kSecond};
    store.request_records = {record};
    ShiftToReference(store, clocks);
    const trace::RequestRecord& shifted = store.request_records.front();
    EXPECT_EQ(shifted.finished - shifted.arrival, kSecond);
    EXPECT_EQ(shifted.admitted, trace::kNoTime);
    EXPECT_EQ(store.spans.begin[0], shifted.arrival) << "the span lies where its request lies";
    return shifted.arrival - kEpoch;
  }
};

TEST(Clock, RequestsMoveWithTheProcessThatReportsThem) {
  EXPECT_EQ(Shifted().RequestOf("101", "engine", ""), -7 * kSecond) << "the traced process itself, by its id";
  EXPECT_EQ(Shifted().RequestOf("1", "Worker_TP1", ""), -7 * kSecond) << "by its name";
  EXPECT_EQ(Shifted().RequestOf("1", "api", "b"), -7 * kSecond) << "beside it on its host";
  EXPECT_EQ(Shifted().RequestOf("100", "engine", ""), 0) << "the reference";
  EXPECT_EQ(Shifted().RequestOf("1", "api", "a"), 0);
  EXPECT_EQ(Shifted().RequestOf("1", "api", ""), 0) << "nothing tells whose clock it is";
  EXPECT_EQ(Shifted().RequestOf("101", "engine", "c"), 0) << "the same id on another host is another process";
}

TEST(ProcessClock, KeepsOrderAndNoTime) {
  ProcessClock clock;
  clock.middle = kEpoch;
  clock.offset = 7 * kSecond;
  clock.drift = 100e-6;
  base::Rng rng(9);
  for (int i = 0; i < 10'000; ++i) {
    const Nanos a = kEpoch + static_cast<Nanos>(rng.Below(100 * kSecond));
    EXPECT_LE(clock.ToReference(a), clock.ToReference(a + 1 + static_cast<Nanos>(rng.Below(3))));
  }
  EXPECT_EQ(clock.ToReference(trace::kNoTime), trace::kNoTime);
  EXPECT_EQ(clock.ToReference(kEpoch), kEpoch - 7 * kSecond);
}

}  // namespace
}  // namespace teller::tree
