#include "locate/coverage.hpp"

#include <gtest/gtest.h>

#include "base/rng.hpp"

namespace teller::locate {
namespace {

using base::Nanos;

TEST(Coverage, CountsEveryCoveredNanosecondOnce) {
  base::Rng rng(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<Nanos, Nanos>> intervals;
    std::vector<bool> covered(120, false);
    for (uint64_t n = rng.Below(8); n > 0; --n) {
      const auto begin = static_cast<Nanos>(rng.Below(100));
      const Nanos end = begin + static_cast<Nanos>(rng.Below(20)) - 4;  // some end before they begin
      intervals.emplace_back(begin, end);
      for (Nanos at = begin; at < end; ++at) covered[static_cast<size_t>(at)] = true;
    }
    const Coverage coverage(intervals);
    for (Nanos begin = 0; begin < 120; begin += 7) {
      Nanos expected = 0;
      for (Nanos end = begin; end < 120; ++end) {
        ASSERT_EQ(coverage.Of(begin, end), expected) << begin << ".." << end;
        expected += covered[static_cast<size_t>(end)];
      }
    }
    EXPECT_EQ(coverage.Of(50, 40), 0);
  }
}

TEST(Coverage, ManyQuestionsOverManyIntervalsAreCheap) {
  // 200,000 each way: a search that walks all intervals for each question would not end in the time of a test run.
  std::vector<std::pair<Nanos, Nanos>> intervals;
  for (Nanos i = 0; i < 200'000; ++i) intervals.emplace_back(10 * i, 10 * i + 5);
  const Coverage coverage(intervals);
  Nanos sum = 0;
  for (Nanos i = 0; i < 200'000; ++i) sum += coverage.Of(10 * i, 10 * i + 10);
  EXPECT_EQ(sum, 5 * 200'000);
}

}  // namespace
}  // namespace teller::locate
