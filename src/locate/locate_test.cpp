#include "locate/locate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <sstream>

#include "base/rng.hpp"
#include "locate/accusation.hpp"
#include "ml/gmm.hpp"
#include "tree/build.hpp"

namespace teller::locate {
namespace {

using trace::FaultClass;
using trace::Nanos;
using trace::VerdictStatus;

/// What is planted into a simulated tensor-parallel run.
struct Plan {
  int ranks = 3;
  int steps = 30;
  int layers = 6;
  double noise = 0.1;       ///< relative spread of every operator
  double preempted = 0.02;  ///< chance that an operator is interrupted for a scheduler's slice
  int slow_rank = -1;
  int slow_layer = -1;  ///< -1: the rank as a whole, where stretch > 1
  double factor = 1;
  double stretch = 1;
  bool even = false;  ///< the stretch is the same everywhere
  double small_factor =
      0;                  ///< above 0: layers end with a small operator, which takes so many times as long in the fault
  Nanos warm_up = 0;      ///< added to one operator of every rank in the two steps after the first
  Nanos pause = 0;        ///< once, in the middle of the run
  Nanos transfer = 0;     ///< added to every collective from the middle on
  Nanos gap = 0;          ///< added to gaps from the middle on, all ranks
  int prefill_step = -1;  ///< one step with 40 times the tokens
  bool ring = false;      ///< the all-reduce passes its parts around: every hop waits for the one before
  int slow_sender = -1;   ///< ring: from the middle on, what this rank sends to the next one takes `hop` longer a part
  bool both_ways = false;  ///< ring: what it receives too
  Nanos hop = 0;
  Nanos clock_skew = 0;         ///< of the last rank
  std::map<int, Nanos> stalls;  ///< by step: added to the transfer of one layer
};

/// Builds the store of such a run as ingest would leave it: per rank a main thread with a step mark and operators, and
/// a gloo thread with one all-reduce a layer that ends together on all ranks.
class Simulation {
 public:
  Simulation(const Plan& plan, uint64_t seed) : plan_(plan), rng_(seed) {
    store_.files.push_back({});
    store_.categories = {{"user_annotation", trace::SpanKind::kAnnotation}, {"cpu_op", trace::SpanKind::kOp}};
    clock_.assign(static_cast<size_t>(plan.ranks), base::kSecond);
    main_.resize(clock_.size());
    comm_.resize(clock_.size());
    for (int s = 0; s < plan.steps; ++s) Step(s);
    for (int r = 0; r < plan.ranks; ++r) Emit(r);
  }

  trace::Diagnosis Diagnose(const LocateOptions& options = {}) {
    const trace::Trees trees = tree::Build(store_, 1);
    return Locate(store_, trees, options);
  }

  /// With steps of the accused rank by their place among its own.
  std::optional<double> Restored(Accusation accusation) {
    const trace::Trees trees = tree::Build(store_, 1);
    for (uint32_t& step : accusation.steps) step += static_cast<uint32_t>(*accusation.rank * plan_.steps);
    return RestoredShares(store_, trees, {accusation}).front();
  }

 private:
  struct Span {
    Nanos begin;
    Nanos end;
    std::string name;
    uint8_t category;
    double tokens;
  };

  double Noise() { return std::max(0.5, 1 + plan_.noise * (rng_.Unit() + rng_.Unit() + rng_.Unit() - 1.5) * 2); }

  bool InFault(int s) const { return s >= plan_.steps / 2; }

  void Op(size_t r, int s, int layer, const char* name, double us, double tokens) {
    double cost = us * Noise() * 1000;
    const bool mine = static_cast<int>(r) == plan_.slow_rank && InFault(s);
    if (mine && layer == plan_.slow_layer && std::string_view(name) == "aten::mm") cost *= plan_.factor;
    if (mine && plan_.slow_layer < 0 && plan_.stretch > 1) {
      cost *= plan_.stretch * (plan_.even ? 1.0 : 0.3 + 1.4 * rng_.Unit());
    }
    if (mine && std::string_view(name) == "aten::silu") cost *= plan_.small_factor;
    if (s >= 1 && s <= 2 && layer == 2 && std::string_view(name) == "aten::add")
      cost += static_cast<double>(plan_.warm_up);
    if (rng_.Unit() < plan_.preempted) cost += 4e6 * rng_.Unit();
    if (mine && s == plan_.steps / 2 + 2 && layer == 2 && std::string_view(name) == "aten::add")
      cost += static_cast<double>(plan_.pause);
    const Nanos begin = clock_[r];
    clock_[r] += static_cast<Nanos>(cost);
    main_[r].push_back({begin, clock_[r], name, 1, tokens});
    clock_[r] += static_cast<Nanos>(5'000 * Noise());
  }

  /// When each rank has its last part: 2 (n - 1) rounds, in each of which a rank sends what it got in the round before.
  std::vector<Nanos> RingEnds(int s) {
    const size_t n = clock_.size();
    std::vector<Nanos> done = clock_;
    std::vector<Nanos> free(n, 0);  // of the hop from r to r + 1
    for (size_t round = 0; round < 2 * (n - 1); ++round) {
      std::vector<Nanos> next(n);
      for (size_t r = 0; r < n; ++r) {
        const size_t to = (r + 1) % n;
        const bool slow = InFault(s) && (static_cast<int>(r) == plan_.slow_sender ||
                                         (plan_.both_ways && static_cast<int>(to) == plan_.slow_sender));
        const Nanos took =
            static_cast<Nanos>(400'000 * Noise()) / static_cast<Nanos>(2 * (n - 1)) + (slow ? plan_.hop : 0);
        free[r] = std::max({done[r], done[to], free[r]}) + took;
        next[to] = free[r];
      }
      done = next;
    }
    return done;
  }

  void Step(int s) {
    const double size = s == plan_.prefill_step ? 40 : 1;
    const Nanos gap = static_cast<Nanos>(1e6 * Noise()) + (InFault(s) ? plan_.gap : 0);
    std::vector<Nanos> begin(clock_.size());
    for (size_t r = 0; r < clock_.size(); ++r) {
      clock_[r] += gap;
      begin[r] = clock_[r];
      main_[r].push_back({begin[r], 0, "step[DECODE bs=" + std::to_string(static_cast<int>(4 * size)) + "]", 0, 0});
    }
    std::vector<size_t> marks;
    for (auto& spans : main_) marks.push_back(spans.size() - 1);
    for (int layer = 0; layer < plan_.layers; ++layer) {
      Nanos last = 0;
      for (size_t r = 0; r < clock_.size(); ++r) {
        Op(r, s, layer, "aten::layer_norm", 150, size);
        Op(r, s, layer, "aten::mm", 600 * size, size);
        Op(r, s, layer, "aten::add", 100, size);
        if (plan_.small_factor > 0) Op(r, s, layer, "aten::silu", 30, size);
        last = std::max(last, clock_[r]);
      }
      const Nanos end = last + static_cast<Nanos>(400'000 * Noise()) + (InFault(s) ? plan_.transfer : 0) +
                        (layer == 2 && plan_.stalls.contains(s) ? plan_.stalls.at(s) : 0);
      const std::vector<Nanos> ends = plan_.ring ? RingEnds(s) : std::vector<Nanos>(clock_.size(), end);
      for (size_t r = 0; r < clock_.size(); ++r) {
        const Nanos leave = ends[r] + static_cast<Nanos>(10'000 * rng_.Unit());
        comm_[r].push_back({clock_[r], leave, "gloo:all_reduce", 0, 0});
        clock_[r] = leave;
      }
    }
    for (size_t r = 0; r < clock_.size(); ++r) main_[r][marks[r]].end = clock_[r];
  }

  void Emit(int r) {
    trace::Process process;
    process.file = trace::FileRow(0);
    process.pid = std::to_string(100 + r);
    process.rank = r;
    process.world_size = plan_.ranks;
    store_.processes.push_back(process);
    for (auto* spans : {&main_[static_cast<size_t>(r)], &comm_[static_cast<size_t>(r)]}) {
      std::stable_sort(spans->begin(), spans->end(), [](const Span& a, const Span& b) {
        return std::pair(a.begin, -a.end) < std::pair(b.begin, -b.end);
      });
      trace::Track track;
      track.process = trace::ProcessRow(static_cast<uint32_t>(r));
      track.tid = std::to_string(store_.tracks.size());
      track.first_span = static_cast<uint32_t>(store_.spans.size());
      track.span_count = static_cast<uint32_t>(spans->size());
      for (const Span& span : *spans) {
        if (span.tokens > 0) {
          trace::OpArgs args;
          args.input_dims = store_.strings.Intern("[[" + std::to_string(static_cast<int>(4 * span.tokens)) + ", 256]]");
          store_.op_args.Append(static_cast<uint32_t>(store_.spans.size()), args);
        }
        const Nanos skew = r + 1 == plan_.ranks ? plan_.clock_skew : 0;
        store_.spans.begin.push_back(span.begin + skew);
        store_.spans.duration.push_back(span.end - span.begin);
        store_.spans.name.push_back(store_.strings.Intern(span.name));
        store_.spans.track.push_back(trace::TrackRow(static_cast<uint32_t>(store_.tracks.size())));
        store_.spans.category.push_back(span.category);
      }
      store_.tracks.push_back(track);
    }
  }

  Plan plan_;
  base::Rng rng_;
  trace::Store store_;
  std::vector<Nanos> clock_;
  std::vector<std::vector<Span>> main_;
  std::vector<std::vector<Span>> comm_;
};

TEST(Locate, HealthyRunsRaiseNoMoreAlarmsThanStated) {
  int alarms = 0;
  constexpr int kRuns = 300;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    Plan plan;
    plan.ranks = 1 + static_cast<int>(seed % 4);
    plan.noise = 0.05 + 0.3 * static_cast<double>(seed % 5) / 5;
    plan.preempted = 0.02 * static_cast<double>(seed % 3);
    const auto diagnosis = Simulation(plan, seed).Diagnose();
    alarms += diagnosis.status == VerdictStatus::kAbnormal;
    if (!diagnosis.findings.empty()) {
      const auto& finding = diagnosis.findings.front();
      std::printf("seed %d: %s %s %g\n", static_cast<int>(seed), std::string(Name(finding.fault)).c_str(),
                  finding.culprit.op.c_str(), finding.false_alarm_probability);
    }
  }
  EXPECT_LE(alarms, kRuns / 100) << "the alarm threshold is 1 % of runs";
}

TEST(Locate, NamesThePlantedOperatorAndItsRank) {
  int right = 0;
  constexpr int kRuns = 60;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    Plan plan;
    plan.slow_rank = static_cast<int>(seed % 3);
    plan.slow_layer = static_cast<int>(seed % 6);
    plan.factor = 4 + static_cast<double>(seed % 8);
    const auto diagnosis = Simulation(plan, seed).Diagnose();
    if (diagnosis.findings.empty()) continue;
    const auto& top = diagnosis.findings.front();
    right += top.culprit.op == "aten::mm" && top.culprit.rank == plan.slow_rank &&
             top.fault == FaultClass::kKernelRegression;
  }
  EXPECT_GE(right, kRuns * 9 / 10);
}

TEST(Locate, AWaitingRankIsNeverTheCulprit) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Plan plan;
    plan.slow_rank = static_cast<int>(seed % 3);
    plan.pause = 300 * base::kMilli;
    const auto diagnosis = Simulation(plan, seed).Diagnose();
    ASSERT_FALSE(diagnosis.findings.empty()) << seed;
    EXPECT_EQ(diagnosis.findings.front().culprit.rank, plan.slow_rank) << seed;
    EXPECT_EQ(diagnosis.findings.front().fault, FaultClass::kRuntimePause) << seed;
    EXPECT_GT(diagnosis.findings.front().saved_share.value_or(0), 0.8) << seed;
  }
}

TEST(Locate, StopsAsLongAsASenderWaitsForAnAnswerAreALinks) {
  size_t found = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Plan plan;
    plan.steps = 60;
    plan.noise = 0.05;
    plan.preempted = 0;
    for (const int step : {30, 34, 41, 47}) plan.stalls[step] = 203 * base::kMilli;
    const auto lossy = Simulation(plan, seed).Diagnose();
    found += !lossy.findings.empty() && lossy.findings.front().fault == FaultClass::kNetLinkFault;
    plan.stalls = {
        {30, 140 * base::kMilli}, {34, 260 * base::kMilli}, {41, 180 * base::kMilli}, {47, 310 * base::kMilli}};
    const auto other = Simulation(plan, seed).Diagnose();
    for (const auto& finding : other.findings) EXPECT_NE(finding.fault, FaultClass::kNetLinkFault) << seed;
  }
  EXPECT_GE(found, 19u);
}

TEST(Accusation, OnlyRepairingTheCulpritMakesTheStepNormal) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Plan plan;
    plan.noise = 0.05;
    plan.preempted = 0;
    plan.slow_rank = static_cast<int>(seed % 3);
    plan.slow_layer = 3;
    plan.factor = 20;
    Simulation run(plan, seed);
    const int other = (plan.slow_rank + 1) % 3;
    std::vector<uint32_t> steps(15);
    std::iota(steps.begin(), steps.end(), 15u);
    EXPECT_GT(run.Restored({plan.slow_rank, "", steps}).value_or(0), 0.8) << seed;
    EXPECT_GT(run.Restored({plan.slow_rank, "aten::mm", steps}).value_or(0), 0.8) << seed;
    EXPECT_LT(run.Restored({plan.slow_rank, "aten::add", steps}).value_or(1), 0.1) << seed;
    EXPECT_LT(run.Restored({other, "", steps}).value_or(1), 0.1) << seed;
    EXPECT_LT(run.Restored({other, "aten::mm", steps}).value_or(1), 0.1) << seed;
  }
}

TEST(Accusation, JitterOfManyFlaggedStepsPaysForNothing) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Plan plan;
    plan.noise = 0.3;
    plan.slow_rank = 1;
    plan.slow_layer = 3;
    plan.factor = 20;
    plan.steps = 40;
    Simulation run(plan, seed);
    std::vector<uint32_t> steps(30);  // the last twenty are slow
    std::iota(steps.begin(), steps.end(), 10u);
    EXPECT_GT(run.Restored({1, "aten::mm", steps}).value_or(0), 0.6) << seed;
    EXPECT_LT(run.Restored({1, "aten::add", steps}).value_or(1), 0.2) << seed;
    EXPECT_LT(run.Restored({0, "", steps}).value_or(1), 0.3) << seed;
  }
}

TEST(Accusation, ANormalStepHasNothingToSave) {
  Plan plan;
  plan.noise = 0.05;
  plan.preempted = 0;
  Simulation run(plan, 3);
  std::vector<uint32_t> steps;
  for (uint32_t s = 5; s < 25; ++s) {
    const auto share = run.Restored({0, "aten::mm", {s}});
    ASSERT_TRUE(share.has_value()) << s;
    if (*share == 0) steps.push_back(s);
  }
  EXPECT_GE(steps.size(), 16u) << "one of ten is longer than nine of ten others";
}

TEST(Accusation, WhatCannotBeToldHasNoShare) {
  Plan plan;
  plan.slow_rank = 1;
  plan.slow_layer = 3;
  plan.factor = 20;
  Simulation run(plan, 3);
  EXPECT_FALSE(run.Restored({1, "aten::nothing", {16}}).has_value());
  EXPECT_FALSE(run.Restored({1, "", {}}).has_value());
  EXPECT_FALSE(run.Restored({1, "", {4'000'000'000u}}).has_value()) << "no such step";
  plan.steps = 4;
  EXPECT_FALSE(Simulation(plan, 3).Restored({1, "", {3}}).has_value()) << "too few to say what is normal";
}

TEST(Locate, AStretchedRankIsStarvedAndNoOperatorIsBlamed) {
  int right = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Plan plan;
    plan.slow_rank = static_cast<int>(seed % 3);
    plan.stretch = 6;
    const auto diagnosis = Simulation(plan, seed).Diagnose();
    if (diagnosis.findings.empty()) continue;
    right += diagnosis.findings.front().fault == FaultClass::kCpuStarved &&
             diagnosis.findings.front().culprit.rank == plan.slow_rank;
  }
  EXPECT_GE(right, 34);
}

TEST(Locate, ARankThatIsSlowerThroughoutStraggles) {
  int right = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Plan plan;
    plan.slow_rank = static_cast<int>(seed % 3);
    plan.noise = 0.05;
    plan.preempted = 0;
    plan.stretch = 2;
    plan.even = true;
    plan.steps = 60;
    const auto diagnosis = Simulation(plan, seed).Diagnose();
    if (diagnosis.findings.empty()) continue;
    const auto& top = diagnosis.findings.front();
    right += top.fault == FaultClass::kStragglerRank && top.culprit.rank == plan.slow_rank && top.steps.size() >= 25;
  }
  EXPECT_GE(right, 38);
}

TEST(Locate, ASmallOperatorThatIsSeveralTimesSlowerIsFound) {
  int right = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Plan plan;
    plan.slow_rank = static_cast<int>(seed % 3);
    plan.noise = 0.05;
    plan.preempted = 0;
    plan.small_factor = 4;
    const auto diagnosis = Simulation(plan, seed).Diagnose();
    if (diagnosis.findings.empty()) continue;
    const auto& top = diagnosis.findings.front();
    right += top.fault == FaultClass::kKernelRegression && top.culprit.op == "aten::silu" &&
             top.culprit.rank == plan.slow_rank;
  }
  EXPECT_GE(right, 38);
}

TEST(Locate, WarmUpIsANoteAndNoFault) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Plan plan;
    plan.warm_up = 40 * base::kMilli;
    const auto diagnosis = Simulation(plan, seed).Diagnose();
    EXPECT_EQ(diagnosis.status, VerdictStatus::kNormal) << seed << ": " << diagnosis.summary;
    EXPECT_FALSE(diagnosis.notes.empty()) << seed;
  }
}

TEST(Locate, ASlowLinkIsNoLateRank) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Plan plan;
    plan.transfer = 20 * base::kMilli;
    const auto diagnosis = Simulation(plan, seed).Diagnose();
    ASSERT_FALSE(diagnosis.findings.empty()) << seed;
    EXPECT_EQ(diagnosis.findings.front().fault, FaultClass::kNetLinkFault) << seed;
  }
}

TEST(Locate, HealthyRingsRaiseNoAlarmAcrossRanks) {
  int alarms = 0;
  constexpr int kRuns = 300;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    Plan plan;
    plan.ring = true;
    plan.ranks = 2 + static_cast<int>(seed % 7);
    plan.noise = 0.05 + 0.3 * static_cast<double>(seed % 5) / 5;
    plan.preempted = 0.02 * static_cast<double>(seed % 3);
    plan.clock_skew = seed % 2 == 0 ? 40 * base::kMilli : 0;
    for (const auto& finding : Simulation(plan, 5000 + seed).Diagnose().findings) {
      alarms += finding.fault == FaultClass::kNetLinkFault || finding.fault == FaultClass::kStragglerRank;
    }
  }
  EXPECT_LE(alarms, kRuns / 100) << "the alarm threshold is 1 % of runs";
}

/// Rings of 2 to 8 ranks with one slow hop or rank; how many are found, and of these on the right end.
struct LinkScore {
  int runs = 0;
  int found = 0;
  int right_end = 0;
  int either_end = 0;
};

LinkScore TryLinks(bool both_ways, Nanos skew) {
  LinkScore score;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Plan plan;
    plan.ring = true;
    plan.ranks = (both_ways ? 3 : 2) + static_cast<int>(seed % (both_ways ? 6 : 7));
    plan.slow_sender = static_cast<int>(seed / 2) % plan.ranks;
    plan.both_ways = both_ways;
    plan.hop = static_cast<Nanos>(3 + seed % 8) * base::kMilli;
    plan.clock_skew = skew;
    const auto diagnosis = Simulation(plan, seed).Diagnose();
    ++score.runs;
    if (diagnosis.findings.empty()) continue;
    const auto& top = diagnosis.findings.front();
    if (top.fault != FaultClass::kNetLinkFault) continue;
    ++score.found;
    score.right_end += top.culprit.rank == plan.slow_sender;
    score.either_end += top.culprit.rank == plan.slow_sender || top.culprit.rank == (plan.slow_sender + 1) % plan.ranks;
  }
  std::printf("%d rings: link found in %d, right end in %d, either end in %d\n", score.runs, score.found,
              score.right_end, score.either_end);
  return score;
}

TEST(Locate, ASlowHopOfARingIsFoundAtItsSender) {
  for (const Nanos skew : {Nanos{0}, 3 * base::kSecond}) {
    const LinkScore score = TryLinks(false, skew);
    EXPECT_GE(score.found, 38);
    EXPECT_GE(score.right_end, 36);
  }
}

TEST(Locate, ARankThatIsSlowBothWaysIsFoundAsOne) {
  const LinkScore score = TryLinks(true, 0);
  EXPECT_GE(score.found, 38);
  EXPECT_GE(score.right_end, 36);
}

TEST(Locate, LongGapsBelongToTheHostBetweenSteps) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Plan plan;
    plan.ranks = 1;
    plan.gap = 30 * base::kMilli;
    const auto diagnosis = Simulation(plan, seed).Diagnose();
    ASSERT_FALSE(diagnosis.findings.empty()) << seed;
    EXPECT_EQ(diagnosis.findings.front().fault, FaultClass::kHostCpuBound) << seed;
    EXPECT_TRUE(diagnosis.findings.front().culprit.op.empty()) << seed;
  }
}

TEST(Locate, ALongPrefillIsExplainedByItsShape) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Plan plan;
    plan.prefill_step = 5 + static_cast<int>(seed % 20);
    const auto diagnosis = Simulation(plan, seed).Diagnose();
    EXPECT_EQ(diagnosis.status, VerdictStatus::kNormal) << seed;
    EXPECT_FALSE(diagnosis.notes.empty()) << seed;
  }
}

/// All of a diagnosis but its suspects.
std::string Rest(const trace::Diagnosis& diagnosis) {
  std::ostringstream out;
  out.precision(17);
  out << Name(diagnosis.status) << diagnosis.confidence << diagnosis.summary;
  for (const auto& missing : diagnosis.missing) out << missing;
  for (const trace::Finding& f : diagnosis.findings) {
    out << f.id << f.score << f.false_alarm_probability << Name(f.fault) << f.view << f.culprit.rank.value_or(-1)
        << f.culprit.process << f.culprit.layer << f.culprit.op << f.culprit.module << f.onset << f.end << f.cost
        << f.saved_share.value_or(-1) << f.explanation;
    for (const auto& step : f.steps) out << step.row.value() << step.score;
    for (const auto& victim : f.victims) out << victim.what;
    for (const auto& evidence : f.evidence) out << evidence.id << evidence.ref << evidence.text;
  }
  for (const auto& note : diagnosis.notes) out << note.text << note.begin << note.end;
  for (const auto& input : diagnosis.not_given) out << input.input << input.cost;
  return out.str();
}

TEST(Locate, NothingElseDependsOnSuspects) {
  size_t named = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Plan plan;
    plan.ranks = 1 + static_cast<int>(seed % 4);
    plan.noise = 0.05 + 0.3 * static_cast<double>(seed % 5) / 5;
    plan.slow_rank = static_cast<int>(seed % 3) - 1;
    plan.stretch = seed % 2 == 0 ? 1.3 : 1;
    plan.slow_layer = seed % 2 == 0 ? -1 : 3;
    plan.factor = 1 + static_cast<double>(seed % 7) / 3;
    plan.gap = seed % 5 == 0 ? 30 * base::kMilli : 0;
    const auto with = Simulation(plan, seed).Diagnose();
    const auto without = Simulation(plan, seed).Diagnose({.most_suspects = 0});
    EXPECT_TRUE(without.suspects.empty());
    EXPECT_LE(with.suspects.size(), 5u);
    EXPECT_EQ(Rest(with), Rest(without)) << seed;
    named += !with.suspects.empty();
  }
  EXPECT_GE(named, 50u);
}

TEST(Locate, NothingToLookAtIsNoVerdict) {
  trace::Store store;
  const trace::Trees trees;
  const auto diagnosis = Locate(store, trees, {});
  EXPECT_EQ(diagnosis.status, VerdictStatus::kCannotTell);
  EXPECT_FALSE(diagnosis.missing.empty());
}

}  // namespace
}  // namespace teller::locate
