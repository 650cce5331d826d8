#include "inject/sim/scheduler.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace teller::inject::sim {
namespace {

/// Requests that arrive while the scheduler works, until all are done.
struct Service {
  explicit Service(SchedulerOptions options, KvLink* link = nullptr) : scheduler(options, link), remote(link) {}

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
        if (remote != nullptr) request.remote = request.prompt;
        requests.push_back(request);
        scheduler.Add(&requests.back());
      }
      Batch batch = scheduler.Next(now);
      for (Request* request : scheduler.TakeBroken()) lost.push_back(request);
      if (!scheduler.options().computes_lost) {
        for (Request* request : lost) request->finished = now;
      }
      Check(batch);
      for (const Batch::Part& part : batch.parts) EXPECT_LE(part.request->ready, now) << "keys that are not here";
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
    EXPECT_EQ(batch.prompt_tokens + batch.decode_tokens, batch.shape.tokens);
    EXPECT_EQ(batch.prompts + batch.decodes, static_cast<int>(batch.parts.size()));
    EXPECT_TRUE(!scheduler.options().prompts_first || batch.prompts == 0 || batch.decodes == 0);
    int64_t blocks = 0;
    for (const Request& request : requests) blocks += request.blocks;
    EXPECT_EQ(blocks, scheduler.used());
    EXPECT_LE(blocks, scheduler.options().blocks);
  }

  Scheduler scheduler;
  KvLink* remote;
  std::deque<Request> requests;
  std::vector<Request*> lost;
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

TEST(Scheduler, ProposedTokensSaveStepsAndAreCounted) {
  const auto steps = [](double accept) {
    Request request;
    request.prompt = 20;
    request.output = 61;
    Scheduler scheduler({.drafts = 3, .accept = accept});
    scheduler.Add(&request);
    int count = 0;
    for (Nanos now = 1; request.finished == 0; ++now, ++count) {
      Batch batch = scheduler.Next(now);
      scheduler.Done(batch, now);
    }
    EXPECT_EQ(request.made, request.output);
    EXPECT_EQ(request.tokens.size(), 61u);
    const DraftCounts& counts = scheduler.drafts();
    EXPECT_EQ(counts.proposed, 3 * counts.drafts);
    uint64_t sum = 0;
    for (const uint64_t right : counts.by_position) sum += right;
    EXPECT_EQ(sum, counts.accepted);
    EXPECT_EQ(scheduler.used(), 0);
    return count;
  };
  EXPECT_EQ(steps(0), 61);
  EXPECT_EQ(steps(1), 1 + 15);
  EXPECT_GT(steps(0.5), 16);
  EXPECT_LT(steps(0.5), 61);
}

TEST(Scheduler, RequestsWaitForTheirKeysAndLostOnesAreComputedOrFail) {
  for (const bool computes : {true, false}) {
    for (const bool elsewhere : {true, false}) {
      KvLink link(1, 1, 5, 1);
      link.Disturb(1, 0.3);
      Service service({.blocks = 600, .made_elsewhere = elsewhere, .computes_lost = computes}, &link);
      service.Serve(5, 60);
      EXPECT_GT(service.lost.size(), 5u);
      EXPECT_EQ(service.scheduler.used(), 0);
      for (const Request& request : service.requests) {
        const bool failed = request.broken && !computes;
        EXPECT_EQ(request.made, failed ? 0 : request.output);
        EXPECT_TRUE(failed || request.admitted >= request.ready);
      }
    }
  }
}

TEST(Scheduler, ARequestThatIsDroppedGivesItsBlocksBack) {
  KvLink link(1, 1, 1000, 1);
  Scheduler scheduler({}, &link);
  std::vector<Request> requests(3);
  for (Request& request : requests) {
    request.prompt = request.output = 100;
    scheduler.Add(&request);
  }
  requests[1].remote = 50;
  Batch batch = scheduler.Next(1);
  scheduler.Done(batch, 2);
  EXPECT_EQ(scheduler.running(), 2u);
  EXPECT_EQ(scheduler.loading(), 1u);
  for (Request& request : requests) EXPECT_TRUE(scheduler.Drop(&request));
  EXPECT_FALSE(scheduler.Drop(&requests[0]));
  EXPECT_EQ(scheduler.used(), 0);
  EXPECT_TRUE(scheduler.Next(3).parts.empty());
}

TEST(Scheduler, PromptsAreCutToTheBudget) {
  Request request;
  request.prompt = 5000;
  request.output = 2;
  Scheduler scheduler({.budget = 2048, .blocks = 1000});
  scheduler.Add(&request);
  std::vector<int64_t> pieces;
  for (Nanos now = 1; request.finished == 0; ++now) {
    Batch batch = scheduler.Next(now);
    pieces.push_back(batch.shape.tokens);
    scheduler.Done(batch, now);
  }
  EXPECT_EQ(pieces, (std::vector<int64_t>{2048, 2048, 904, 1}));
}

}  // namespace
}  // namespace teller::inject::sim
