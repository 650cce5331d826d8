#include "locate/late_start.hpp"

#include <gtest/gtest.h>

#include "locate/explain.hpp"
#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

constexpr uint32_t kRequests = 8;
constexpr uint32_t kSteps = 6;  // of each
constexpr Nanos kStep = 10 * base::kMilli;

struct Wait {
  int rank = -1;
  uint32_t request = 0;
  Nanos before = 0;   ///< the request, or else
  Nanos leaving = 0;  ///< late the collective before it
};

/// Ranks that take in requests, agree on each and run its steps; every rank is `idle` between two of them.
TestRun Serving(int ranks, const Wait& wait, Nanos idle = 100'000) {
  TestRun run(ranks);
  std::vector<std::vector<Nanos>> arrivals(kRequests, std::vector<Nanos>(static_cast<size_t>(ranks)));
  std::vector<std::vector<Nanos>> lefts = arrivals;
  for (int r = 0; r < ranks; ++r) {
    Nanos at = base::kSecond;
    for (uint32_t q = 0; q < kRequests; ++q) {
      const bool here = r == wait.rank && q == wait.request;
      const bool any = q == wait.request;
      at += idle + (here ? wait.before : 0);
      arrivals[q][static_cast<size_t>(r)] = at;
      at += (any && !here ? wait.before : 0) + (any ? wait.leaving : 0) + 50'000;
      lefts[q][static_cast<size_t>(r)] = at - (any && !here ? wait.leaving : 0);
      for (uint32_t s = 0; s < kSteps; ++s) {
        trace::Step& step = run.AddStep(r, q * kSteps + s, kStep);
        step.kind = s == 0 ? trace::StepKind::kPrefill : trace::StepKind::kDecode;
        step.decode_requests = s == 0 ? 0 : 1;
        step.prefill_requests = s == 0 ? 1 : 0;
        step.begin = at;
        step.end = at + kStep;
        const bool first = q == 0 && s == 0;
        step.gap_before = first ? -1 : step.begin - run.trees.steps[run.trees.steps.size() - 2].end;
        at = step.end + (s + 1 < kSteps ? 100'000 : 0);
      }
    }
  }
  for (uint32_t q = 0; q < kRequests; ++q) {
    trace::Collective collective;
    collective.late_rank = wait.rank;
    for (int r = 0; r < ranks; ++r) {
      const auto rank = static_cast<size_t>(r);
      trace::CollectiveMember member;
      member.rank = r;
      member.process = trace::ProcessRow(static_cast<uint32_t>(r));
      member.arrival = arrivals[q][rank];
      member.end = lefts[q][rank];
      member.span = trace::SpanRow(
          run.AddSpan(r, trace::SpanKind::kAnnotation, "gloo:broadcast", member.arrival, member.end - member.arrival));
      collective.members.push_back(member);
    }
    run.trees.collectives.push_back(collective);
  }
  run.profiles = ProfileSteps(run.store, run.trees);
  return run;
}

uint32_t StepAt(int rank, uint32_t request) {
  return (static_cast<uint32_t>(rank) * kRequests + request) * kSteps;
}

TEST(LateStart, ARankForWhichTheOthersWaitIsNotIdle) {
  for (const int ranks : {2, 4}) {
    const TestRun run = Serving(ranks, {.rank = 1, .request = 5, .before = 300 * base::kMilli});
    const std::vector<Nanos> late = LateStarts(run.trees);
    for (uint32_t s = 0; s < late.size(); ++s) {
      EXPECT_EQ(late[s], s == StepAt(1, 5) ? 300 * base::kMilli : 0) << s;
      EXPECT_EQ(run.profiles[s].late_start, s == StepAt(1, 5)) << s;
    }
    EXPECT_EQ(run.profiles[StepAt(1, 5)].gap, 300 * base::kMilli);
  }
}

TEST(LateStart, WithoutRequestsAllAreIdle) {
  const TestRun run = Serving(2, {}, 300 * base::kMilli);
  for (const Nanos late : LateStarts(run.trees)) EXPECT_EQ(late, 0);
}

TEST(LateStart, ARankThatIsHeldInACollectiveIsNotLate) {
  TestRun run = Serving(2, {.rank = 1, .request = 5, .leaving = 300 * base::kMilli});
  // The other one has gone on to a collective of its first step.
  trace::Collective next;
  next.late_rank = 1;
  const trace::Step& here = run.trees.steps[StepAt(1, 5)];
  for (int r = 0; r < 2; ++r) {
    trace::CollectiveMember member;
    member.rank = r;
    member.process = trace::ProcessRow(static_cast<uint32_t>(r));
    member.arrival = here.begin + base::kMilli - (r == 0 ? 290 * base::kMilli : 0);
    member.end = here.begin + 2 * base::kMilli;
    next.members.push_back(member);
  }
  run.trees.collectives.push_back(next);
  for (const Nanos late : LateStarts(run.trees)) EXPECT_EQ(late, 0);
}

Hypothesis PauseBefore(const TestRun& run, uint32_t step) {
  Hypothesis h;
  h.trouble = Trouble::kPause;
  h.process = trace::ProcessRow(1);
  h.rank = 1;
  h.in_gap = true;
  h.steps = {step};
  h.lost_in = {300 * base::kMilli};
  h.lost = h.worst = h.lost_in.front();
  h.worst_begin = h.onset = run.trees.steps[h.steps.front()].begin - h.lost;
  h.end = h.onset + h.lost;
  h.false_alarm = 1e-4;
  return h;
}

trace::FaultClass ClassOf(const TestRun& run) {
  return Explain(run.scene(), PauseBefore(run, StepAt(1, 5)), std::nullopt).fault;
}

TEST(LateStart, WhereARankHardlyEverIsItsWorkThereIsToBlame) {
  const Wait wait{.rank = 1, .request = 5, .before = 300 * base::kMilli};
  EXPECT_EQ(ClassOf(Serving(2, wait)), trace::FaultClass::kPreForwardStall);
  EXPECT_EQ(ClassOf(Serving(2, wait, 40 * base::kMilli)), trace::FaultClass::kRuntimePause)
      << "who is idle for long may be stopped there by anything";
}

TEST(LateStart, WhoIsLateBetweenTwoStepsOfARunningSequenceIsToBlameItself) {
  TestRun run = Serving(2, {.rank = 1, .request = 5, .before = 300 * base::kMilli});
  for (trace::Process& process : run.store.processes) process.engine = "vllm";
  const uint32_t step = StepAt(1, 5);
  run.trees.steps[step].decode_requests = 1;  // the sequence of the step before goes on
  run.profiles = ProfileSteps(run.store, run.trees);
  EXPECT_FALSE(run.profiles[step].late_start);
  Hypothesis h = PauseBefore(run, step);
  const trace::Finding own = Explain(run.scene(), h, std::nullopt);
  EXPECT_EQ(own.fault, trace::FaultClass::kRuntimePause);
  EXPECT_EQ(own.culprit.rank, 1);
  EXPECT_NE(own.culprit.process, "EngineCore");
  h.steps = {step + 2};  // where nobody waits for it, whoever schedules may be late
  EXPECT_EQ(Explain(run.scene(), h, std::nullopt).culprit.process, "EngineCore");
}

}  // namespace
}  // namespace teller::locate
