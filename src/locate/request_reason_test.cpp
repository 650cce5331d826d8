#include "locate/request_reason.hpp"

#include <gtest/gtest.h>

namespace teller::locate {
namespace {

using trace::Nanos;
using trace::PhaseKind;
using trace::Request;

constexpr Nanos kMs = 1'000'000;

/// A request of a second whose queue took `queue`; nothing else is told where `queue` is not.
Request Queued(Nanos queue, bool told) {
  Request request;
  request.id = "r";
  request.e2e = 1000 * kMs;
  if (queue > 0) request.phases.push_back({PhaseKind::kQueue, trace::kNoTime, queue});
  request.phases.push_back({PhaseKind::kUnexplained, trace::kNoTime, request.e2e - queue});
  if (told) request.Tell(PhaseKind::kQueue);
  return request;
}

TEST(RequestReason, WhatNobodyStatesIsNotUsual) {
  trace::Trees trees;
  for (int i = 0; i < 90; ++i) trees.requests.push_back(Queued(0, false));
  for (int i = 0; i < 10; ++i) trees.requests.push_back(Queued(600 * kMs, true));
  const UsualRequest usual = LearnUsual(trees);
  EXPECT_EQ(usual.requests, 100u);
  EXPECT_EQ(usual.queue, 600 * kMs) << "the ninety say nothing of their queue";
  EXPECT_EQ(usual.front, 0);
  const std::string why = RequestReason(trees, usual, trace::RequestRow(95));
  EXPECT_EQ(why.find("scheduler's queue"), std::string::npos) << why;
}

TEST(RequestReason, AStatedZeroCounts) {
  trace::Trees trees;
  for (int i = 0; i < 9; ++i) trees.requests.push_back(Queued(0, true));
  trees.requests.push_back(Queued(600 * kMs, true));
  const UsualRequest usual = LearnUsual(trees);
  EXPECT_EQ(usual.queue, 0);
  EXPECT_NE(RequestReason(trees, usual, trace::RequestRow(9)).find("scheduler's queue"), std::string::npos);
}

TEST(RequestReason, SaysWhyNoStepsAreKnown) {
  trace::Trees trees;
  Request request;
  request.id = "r";
  request.e2e = 1000 * kMs;
  request.phases.push_back({PhaseKind::kPrefill, trace::kNoTime, request.e2e});
  request.Tell(PhaseKind::kPrefill);
  for (const trace::NoSteps why :
       {trace::NoSteps::kNoneRecorded, trace::NoSteps::kUncertain, trace::NoSteps::kOutside}) {
    request.no_steps = why;
    trees.requests = {request};
    EXPECT_NE(RequestReason(trees, {}, trace::RequestRow(0)).find(std::string(Text(why))), std::string::npos);
  }
}

}  // namespace
}  // namespace teller::locate
