#include "locate/operator_size.hpp"

#include <gtest/gtest.h>

#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

/// One process of 20 decoding steps that calls one operator six times each. From step 8 to 15 it takes `longer` times
/// as long and, where sizes are recorded, has `larger` times as many elements.
struct OneOperator {
  TestRun run{1};
  Hypothesis claim;

  OneOperator(double longer, double larger, const std::string& name = "aten::mm", bool sizes = true,
              bool device = false) {
    for (uint32_t s = 0; s < 20; ++s) {
      const bool hit = s >= 8 && s < 16;
      run.AddStep(0, s).new_tokens = -1;
      for (int call = 0; call < 6; ++call) {
        run.AddSlot(SlotKey::Kind::kOp, name, 100'000, hit ? longer : 1);
        const auto rows = static_cast<int>(hit ? 2 * larger : 2);
        const auto dims = run.store.strings.Intern("[[" + std::to_string(rows) + ", 64], [64, 64]]");
        if (sizes) run.store.op_args.Append(run.profiles.back().slots.back().span, {.input_dims = dims});
      }
      if (device) run.AddSlot(SlotKey::Kind::kGpu, "kernel", 100'000);
      if (hit) claim.steps.push_back(s);
    }
    claim.trouble = Trouble::kSlowOperator;
    claim.process = trace::ProcessRow(0);
    claim.whole_operator = true;
    claim.slot = run.profiles[8].slots[0].key;
    claim.span = run.profiles[8].slots[0].span;
    claim.usual = 100'000;
    claim.worst = static_cast<Nanos>(longer * 100'000);
  }
  bool MayTakeMore() const { return locate::MayTakeMore(run.scene(), claim); }
};

TEST(OperatorSize, WhatIsLargerTakesLongerInProportion) {
  EXPECT_TRUE(OneOperator(6, 8).MayTakeMore());
  EXPECT_FALSE(OneOperator(6, 1).MayTakeMore());
  EXPECT_FALSE(OneOperator(20, 8).MayTakeMore()) << "more than in proportion";
  EXPECT_FALSE(OneOperator(6, 8, "aten::mm", false).MayTakeMore()) << "sizes are not recorded";
  EXPECT_FALSE(OneOperator(6, 8, "aten::mm", true, true).MayTakeMore()) << "the host only launches";
  OneOperator told(6, 8);
  for (StepNormal& normal : told.run.normals) normal.same_shape = true;
  for (trace::Step& step : told.run.trees.steps) step.new_tokens = 8;
  EXPECT_FALSE(told.MayTakeMore()) << "steps with as many tokens were compared";
}

TEST(OperatorSize, OtherKindsOfStepsSayNothing) {
  OneOperator one(6, 1);
  for (const uint32_t s : {3u, 10u}) {
    one.run.trees.steps[s].kind = trace::StepKind::kPrefill;
    const auto dims = one.run.store.strings.Intern("[[512, 64], [64, 64]]");
    for (const Slot& slot : one.run.profiles[s].slots) {
      for (size_t i = 0; i < one.run.store.op_args.size(); ++i) {
        if (one.run.store.op_args.row(i) == slot.span) one.run.store.op_args.value(i).input_dims = dims;
      }
    }
  }
  EXPECT_FALSE(one.MayTakeMore());
}

TEST(OperatorSize, OnePlaceIsComparedWithItself) {
  OneOperator one(6, 8);
  one.claim.whole_operator = false;
  EXPECT_TRUE(one.MayTakeMore());
  one.claim.slot.ordinal = 99;
  EXPECT_FALSE(one.MayTakeMore()) << "it is nowhere";
}

TEST(OperatorSize, ListsOfPositionsAreNotRecorded) {
  EXPECT_TRUE(OneOperator(6, 1, "aten::index").MayTakeMore());
  EXPECT_FALSE(OneOperator(14, 1, "aten::index").MayTakeMore());
}

TEST(OperatorSize, WithoutAnythingToCompareNothingIsSaid) {
  OneOperator one(6, 8);
  one.claim.steps.clear();
  EXPECT_FALSE(one.MayTakeMore());
  for (uint32_t s = 0; s < 20; ++s) one.claim.steps.push_back(s);
  EXPECT_FALSE(one.MayTakeMore());
  one = OneOperator(6, 8);
  ASSERT_TRUE(one.MayTakeMore());
  one.claim.span = kNoSpan;
  EXPECT_FALSE(one.MayTakeMore());
}

}  // namespace
}  // namespace teller::locate
