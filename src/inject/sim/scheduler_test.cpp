#include "inject/sim/scheduler.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace teller::inject::sim {
namespace {

/// Requests that arrive while the scheduler works, until all are done.
struct Service {
  explicit Service(SchedulerOptions options) : scheduler(options) {}

  void Serve(uint64_t seed, size_t count) {
    base::Rng rng(seed);
    size_t done = 0;
    for (Nanos now = 1; done < count; ++now) {
      ASSERT_LT(now, 100000) << "it got stuck";
      if (requests.size() < count && rng.Unit() < 0.3) {
        Request request;
        request.prompt = 1 + static_cast<int64_t>(rng.Below(900));
        request.shared = request.prompt > 64 && rng.Unit() < 0.5 ? 64 : 0;
        request.output = 1 + static_cast<int64_t>(rng.Below(60));
        requests.push_back(request);
        scheduler.Add(&requests.back());
      }
      const Batch batch = scheduler.Next(now);
      Check(batch);
      scheduler.Done(batch, now);
      done = 0;
      for (const Request& request : requests) done += request.finished > 0;
    }
  }

  void Check(const Batch& batch) {
    int64_t tokens = 0;
    for (const Batch::Part& part : batch.parts) {
      EXPECT_GT(part.tokens, 0);
      tokens += part.tokens;
      EXPECT_GE(part.request->blocks * 16, part.request->computed + part.tokens) << "keys without a place";
    }
    EXPECT_EQ(tokens, batch.shape.tokens);
    EXPECT_EQ(batch.prompt_tokens + batch.decodes, batch.shape.tokens);
    EXPECT_EQ(batch.prompts + batch.decodes, static_cast<int>(batch.parts.size()));
    EXPECT_TRUE(!scheduler.options().prompts_first || batch.prompts == 0 || batch.decodes == 0);
    int64_t blocks = 0;
    for (const Request& request : requests) blocks += request.blocks;
    EXPECT_EQ(blocks, scheduler.used());
    EXPECT_LE(blocks, scheduler.options().blocks);
  }

  Scheduler scheduler;
  std::deque<Request> requests;
};

TEST(Scheduler, EveryRequestGetsItsTokensAndGivesItsBlocksBack) {
  for (const bool prompts_first : {false, true}) {
    for (const int64_t blocks : {100, 6000}) {
      for (uint64_t seed = 1; seed <= 8; ++seed) {
        Service service({.blocks = blocks, .prompts_first = prompts_first});
        service.Serve(seed, 60);
        EXPECT_EQ(service.scheduler.used(), 0);
        for (const Request& request : service.requests) {
          EXPECT_EQ(request.made, request.output);
          EXPECT_EQ(request.tokens.size(), static_cast<size_t>(request.output));
          EXPECT_LE(request.admitted, request.first);
          EXPECT_LE(request.first, request.finished);
        }
      }
    }
  }
}

TEST(Scheduler, ThrowsOutOnlyWhenTheCacheIsFull) {
  Service wide({.blocks = 100000});
  wide.Serve(3, 80);
  EXPECT_EQ(wide.scheduler.retractions(), 0u);
  Service narrow({.blocks = 100});
  narrow.Serve(3, 80);
  EXPECT_GT(narrow.scheduler.retractions(), 0u);
}

TEST(Scheduler, PromptsAreCutToTheBudget) {
  Request request;
  request.prompt = 5000;
  request.output = 2;
  Scheduler scheduler({.budget = 2048, .blocks = 1000});
  scheduler.Add(&request);
  std::vector<int64_t> pieces;
  for (Nanos now = 1; request.finished == 0; ++now) {
    const Batch batch = scheduler.Next(now);
    pieces.push_back(batch.shape.tokens);
    scheduler.Done(batch, now);
  }
  EXPECT_EQ(pieces, (std::vector<int64_t>{2048, 2048, 904, 1}));
}

}  // namespace
}  // namespace teller::inject::sim
