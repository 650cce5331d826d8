#include "locate/divergence.hpp"

#include <gtest/gtest.h>

#include <string>

namespace teller::locate {
namespace {

/// Ranks that call collectives, one a millisecond: eight all-reduces and a broadcast, again and again.
struct Job {
  trace::Store store;
  trace::Trees trees;

  /// The last rank begins a step with its `call`-th call.
  void StepAt(size_t call) {
    trace::Step step;
    step.process = trace::ProcessRow(static_cast<uint32_t>(store.processes.size() - 1));
    step.begin = static_cast<base::Nanos>(call) * base::kMilli - base::kMilli / 4;
    step.end = step.begin + 8 * base::kMilli;
    trees.steps.push_back(step);
  }

  /// The last rank's all-reduces and broadcasts are carried out by gloo.
  void CarriedOut(const std::vector<std::string>& calls) {
    const auto process = trace::ProcessRow(static_cast<uint32_t>(store.processes.size() - 1));
    const uint32_t first = store.tracks.back().first_span;
    for (uint32_t i = 0; i < calls.size(); ++i) {
      const auto row = static_cast<uint32_t>(store.spans.size());
      store.spans.name.push_back(
          store.strings.Intern(calls[i] == "c10d::allreduce_" ? "gloo:all_reduce" : "gloo:broadcast"));
      store.spans.begin.push_back(store.spans.begin[first + i]);
      store.spans.duration.push_back(base::kMilli / 4);
      store.spans.track.push_back(store.spans.track[first]);
      store.spans.category.push_back(0);
      trace::CollectiveMember member;
      member.process = process;
      member.span = trace::SpanRow(row);
      trace::Collective collective;
      collective.members.push_back(member);
      trees.collectives.push_back(collective);
    }
  }

  void Rank(const std::vector<std::string>& calls) {
    const auto row = static_cast<uint32_t>(store.processes.size());
    trace::Process process;
    process.rank = static_cast<int>(row);
    process.name = "rank" + std::to_string(row);
    store.processes.push_back(process);
    trace::Track track;
    track.process = trace::ProcessRow(row);
    track.first_span = static_cast<uint32_t>(store.spans.size());
    track.span_count = static_cast<uint32_t>(calls.size());
    const trace::TrackRow at(static_cast<uint32_t>(store.tracks.size()));
    store.tracks.push_back(track);
    for (size_t i = 0; i < calls.size(); ++i) {
      store.spans.name.push_back(store.strings.Intern(calls[i]));
      store.spans.begin.push_back(static_cast<base::Nanos>(i) * base::kMilli);
      store.spans.duration.push_back(base::kMilli / 2);
      store.spans.track.push_back(at);
      store.spans.category.push_back(0);
    }
  }
};

std::vector<std::string> Steps(size_t count, size_t reduces_at_the_end = 8, bool last_broadcast = true) {
  std::vector<std::string> calls;
  for (size_t s = 0; s < count; ++s) {
    const bool last = s + 1 == count;
    for (size_t i = 0; i < (last ? reduces_at_the_end : 8); ++i) calls.push_back("c10d::allreduce_");
    if (!last || last_broadcast) calls.push_back("c10d::broadcast_");
  }
  return calls;
}

trace::Finding Stuck() {
  trace::Finding finding;
  finding.fault = trace::FaultClass::kCollDivergence;
  finding.score = 0.73;
  return finding;
}

TEST(Divergence, TheRankThatBreaksWithItsHabitIsNamed) {
  for (const int culprit : {0, 1}) {
    for (const bool twice : {true, false}) {
      Job job;
      for (int rank = 0; rank < 2; ++rank) {
        auto calls = Steps(10 + static_cast<size_t>(rank));  // traces need not begin together
        if (rank == culprit && twice) calls = Steps(10, 9, false);
        if (rank == culprit && !twice) {
          calls.pop_back();  // left out, and on to the next step
          calls.push_back("c10d::allreduce_");
        }
        job.Rank(calls);
        for (size_t s = 0; 9 * s < calls.size(); ++s) job.StepAt(9 * s);
        if (rank == culprit && !twice) job.StepAt(calls.size() - 1);
        job.CarriedOut(calls);
      }
      trace::Finding finding = Stuck();
      CompleteDivergence(job.store, job.trees, finding);
      ASSERT_TRUE(finding.culprit.rank.has_value());
      EXPECT_EQ(*finding.culprit.rank, culprit);
      EXPECT_EQ(finding.culprit.op, twice ? "gloo:all_reduce" : "gloo:broadcast");
      ASSERT_EQ(finding.evidence.size(), 1u);
    }
  }
}

TEST(Divergence, NothingIsLeftOutWhereTheUsualCallOpensAStepToo) {
  Job job;
  for (const bool culprit : {true, false}) {
    auto calls = Steps(10);
    if (culprit) calls.emplace_back("c10d::broadcast_");  // opens the eleventh step
    job.Rank(calls);
    for (size_t s = 0; 9 * s < calls.size(); ++s) job.StepAt(9 * s);
    job.CarriedOut(calls);
  }
  trace::Finding finding = Stuck();
  CompleteDivergence(job.store, job.trees, finding);
  EXPECT_EQ(finding.culprit.rank, 0);
  EXPECT_EQ(finding.culprit.op, "gloo:broadcast");
  EXPECT_EQ(finding.explanation.find("left out"), std::string::npos) << finding.explanation;
}

TEST(Divergence, NobodyIsNamedWhereAllKeepTheirHabit) {
  Job job;
  job.Rank(Steps(10));
  job.Rank(Steps(10, 8, false));  // the other one's last call is still to come
  trace::Finding finding = Stuck();
  CompleteDivergence(job.store, job.trees, finding);
  EXPECT_FALSE(finding.culprit.rank.has_value());
  EXPECT_TRUE(finding.evidence.empty());
}

TEST(Divergence, NobodyIsNamedWhereTwoBreakWithIt) {
  Job job;
  job.Rank(Steps(10, 9, false));
  job.Rank(Steps(10, 9, false));
  trace::Finding finding = Stuck();
  CompleteDivergence(job.store, job.trees, finding);
  EXPECT_FALSE(finding.culprit.rank.has_value());
}

TEST(Divergence, OtherFindingsStayAsTheyAre) {
  Job job;
  job.Rank(Steps(10, 9, false));
  trace::Finding finding = Stuck();
  finding.fault = trace::FaultClass::kProcDeath;
  CompleteDivergence(job.store, job.trees, finding);
  EXPECT_FALSE(finding.culprit.rank.has_value());
}

}  // namespace
}  // namespace teller::locate
