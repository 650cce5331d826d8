#include "locate/arrival_delay.hpp"

#include <gtest/gtest.h>

#include "align/engine_simulation.hpp"
#include "align/requests.hpp"
#include "locate/front_end.hpp"

namespace teller::locate {
namespace {

using align::testing::Engine;
using align::testing::kMs;
using trace::Nanos;

/// From request 20 on the engine is idle whenever one of them comes.
void Spread(Engine& engine) {
  engine.Arrive(40);
  for (size_t i = 20; i < 40; ++i) engine.truths[i].arrival += static_cast<Nanos>(i - 19) * 1'200 * kMs;
}

TEST(ArrivalDelay, HealthyRunsGiveNone) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Engine engine(seed);
    engine.Run(40);
    align::BuildRequests(engine.store, engine.trees);
    EXPECT_TRUE(OwnDelays(engine.trees).empty()) << "seed " << seed;
  }
}

TEST(ArrivalDelay, ATokenizerThatIsSlowForEachIsFoundThoughTheEngineIsIdle) {
  size_t found = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Engine engine(seed);
    Spread(engine);
    for (size_t i = 24; i < 28; ++i) engine.truths[i].front = 300 * kMs + engine.Between(0, 5 * kMs);
    engine.Finish();
    align::BuildRequests(engine.store, engine.trees);
    const auto own = OwnDelays(engine.trees);
    const auto findings = FindFrontEndCauses(engine.store, engine.trees);
    if (own.size() < 3 || findings.empty()) continue;
    ++found;
    EXPECT_EQ(findings.front().culprit.process, "APIServer");
    for (const auto& [request, wait] : own) {
      EXPECT_GE(request, 24u);
      EXPECT_LT(request, 28u);
    }
  }
  EXPECT_GE(found, 30u);
}

TEST(ArrivalDelay, TwoThatAgreeExactlyAreEnoughAndTwoThatAgreeRoughlyAreNot) {
  size_t exact = 0;
  size_t rough = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    for (const Nanos second : {301 * kMs, 270 * kMs}) {
      Engine engine(seed);
      Spread(engine);
      engine.truths[24].front = 300 * kMs;
      engine.truths[25].front = second;
      engine.Finish();
      align::BuildRequests(engine.store, engine.trees);
      (second == 301 * kMs ? exact : rough) += !OwnDelays(engine.trees).empty();
    }
  }
  EXPECT_GE(exact, 24u);
  EXPECT_EQ(rough, 0u);
}

TEST(ArrivalDelay, WaitsThatStopsCutToDifferentLengthsAreNotTheFrontEnds) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Engine engine(seed);
    Spread(engine);
    const Nanos waits[] = {120 * kMs, 480 * kMs, 250 * kMs, 390 * kMs};
    for (size_t i = 24; i < 28; ++i) engine.truths[i].front = waits[(i + seed) % 4];
    engine.Finish();
    align::BuildRequests(engine.store, engine.trees);
    EXPECT_TRUE(OwnDelays(engine.trees).empty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace teller::locate
