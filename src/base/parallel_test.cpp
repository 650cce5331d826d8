#include "base/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace teller::base {
namespace {

TEST(Parallel, EveryIndexIsDoneOnce) {
  std::vector<std::atomic<int>> done(1000);
  ParallelFor(4, done.size(), [&done](size_t i) { ++done[i]; });
  for (const auto& count : done) EXPECT_EQ(count, 1);
}

TEST(Parallel, NothingToDoIsFine) {
  ParallelFor(4, 0, [](size_t) { FAIL(); });
}

TEST(Parallel, AWorkersExceptionReachesTheCaller) {
  EXPECT_THROW(RunWorkers(3,
                          [](unsigned worker) {
                            if (worker == 2) throw std::bad_alloc();
                          }),
               std::bad_alloc);
}

TEST(Parallel, ThereIsAlwaysAThread) {
  EXPECT_GE(ThreadCount(0), 1u);
  EXPECT_EQ(ThreadCount(3), 3u);
}

}  // namespace
}  // namespace teller::base
