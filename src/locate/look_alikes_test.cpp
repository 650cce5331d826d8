#include "locate/look_alikes.hpp"

#include <gtest/gtest.h>

#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

/// One process with steps one after the other.
struct Traced {
  trace::Store store;
  trace::Trees trees;
  std::vector<StepProfile> profiles;
  std::vector<StepNormal> normals;
  std::vector<trace::Note> notes;

  Traced() { store.processes.resize(2); }
  void Step(trace::StepKind kind, int64_t tokens, int64_t prompts, uint32_t process = 0) {
    trace::Step step;
    step.process = trace::ProcessRow(process);
    step.kind = kind;
    step.new_tokens = tokens;
    step.prefill_requests = prompts;
    step.begin = static_cast<Nanos>(trees.steps.size()) * 20'000'000;
    step.end = step.begin + 15'000'000;
    trees.steps.push_back(step);
  }
  /// What is left of a claim.
  size_t Left(Hypothesis h) {
    h.process = trace::ProcessRow(0);
    std::vector<Hypothesis> claims = {std::move(h)};
    DropLookAlikes(Scene{store, trees, profiles, normals}, claims, notes);
    return claims.size();
  }
};

Hypothesis Pause(Nanos length, std::vector<uint32_t> steps = {1}) {
  Hypothesis h;
  h.trouble = Trouble::kPause;
  h.worst = length;
  h.in_gap = true;
  h.lost_in.assign(steps.size(), length);
  h.steps = std::move(steps);
  return h;
}

TEST(LookAlikes, OneShortPauseOfAServiceIsANote) {
  Traced run;
  for (int i = 0; i < 9; ++i) run.Step(trace::StepKind::kDecode, 2, 0);
  EXPECT_EQ(run.Left(Pause(80'000'000)), 0u);
  EXPECT_EQ(run.notes.size(), 1u);
  EXPECT_EQ(run.Left(Pause(800'000'000)), 1u);
  EXPECT_EQ(run.Left(Pause(80'000'000, {1, 5})), 1u);
  run.Step(trace::StepKind::kDecode, 2, 0, 1);
  EXPECT_EQ(run.Left(Pause(80'000'000)), 1u);  // a peer was there to compare with
}

TEST(LookAlikes, DecodingReadsTheContextOfALongPrompt) {
  Hypothesis slow;
  slow.trouble = Trouble::kSlowOperator;
  slow.steps = {6, 7, 8};
  slow.lost_in = {2'000'000, 2'000'000, 2'000'000};
  for (const int64_t prompt : {60, 4000}) {
    Traced run;
    for (int i = 0; i < 4; ++i) run.Step(trace::StepKind::kPrefill, 60, 1);
    run.Step(trace::StepKind::kPrefill, prompt, 1);
    for (int i = 0; i < 6; ++i) run.Step(trace::StepKind::kDecode, 3, 0);
    EXPECT_EQ(run.Left(slow), prompt > 1000 ? 0u : 1u);
    Hypothesis grave = slow;
    grave.lost_in.assign(3, 12'000'000);
    EXPECT_EQ(run.Left(grave), 1u);  // far more than a context adds
  }
}

TEST(LookAlikes, WhatAPromptComputesTellsItsLengthWhereNothingElseDoes) {
  Hypothesis slow;
  slow.trouble = Trouble::kSlowOperator;
  slow.steps = {6, 7, 8};
  slow.lost_in = {2'000'000, 2'000'000, 2'000'000};
  constexpr double kWeights = 5e6;  // that every step reads
  for (const double work : {1e6, 13e6}) {
    Traced run;
    for (int i = 0; i < 5; ++i) {
      run.Step(trace::StepKind::kPrefill, -1, -1);
      run.trees.steps.back().work = kWeights + (i == 4 ? work : 1e6);
    }
    for (int i = 0; i < 6; ++i) {
      run.Step(trace::StepKind::kDecode, -1, -1);
      run.trees.steps.back().work = kWeights;
    }
    EXPECT_EQ(run.Left(slow), work > 2e6 ? 0u : 1u);
  }
}

TEST(LookAlikes, AttentionAfterALargeStepOfNoKnownKindReadsWhatItComputed) {
  for (const double large : {5e9, 60e9}) {
    for (const char* name : {"flash_fwd_kernel", "aten::mm"}) {
      Traced run;
      for (int i = 0; i < 20; ++i) {
        run.Step(trace::StepKind::kUnknown, -1, -1);
        run.trees.steps.back().work = i == 9 ? large : 5e9;
      }
      run.store.spans.name.push_back(run.store.strings.Intern(name));
      Hypothesis slow;
      slow.trouble = Trouble::kSlowOperator;
      slow.span = 0;
      for (uint32_t s = 10; s < 20; ++s) {
        slow.steps.push_back(s);
        slow.lost_in.push_back(160'000);
      }
      const bool attention = std::string_view(name) != "aten::mm";
      EXPECT_EQ(run.Left(slow), large > 10e9 && attention ? 0u : 1u) << name << large;
    }
  }
}

TEST(LookAlikes, AttentionAfterOneOfManyEqualPromptsHasNoLongerContext) {
  Traced run;
  for (int i = 0; i < 40; ++i) {
    run.Step(trace::StepKind::kUnknown, -1, -1);
    run.trees.steps.back().work = i % 8 == 1 ? 60e9 : 5e9;
  }
  run.store.spans.name.push_back(run.store.strings.Intern("flash_fwd_kernel"));
  Hypothesis slow;
  slow.trouble = Trouble::kSlowOperator;
  slow.span = 0;
  for (uint32_t s = 10; s < 16; ++s) {
    slow.steps.push_back(s);
    slow.lost_in.push_back(160'000);
  }
  EXPECT_EQ(run.Left(slow), 1u);
}

TEST(LookAlikes, APromptThatIsCutToABudgetIsOneLongPrompt) {
  Hypothesis slow;
  slow.trouble = Trouble::kSlowOperator;
  slow.steps = {6, 7, 8};
  slow.lost_in = {2'000'000, 2'000'000, 2'000'000};
  for (const int64_t rest : {600, 2048}) {
    Traced run;
    run.Step(trace::StepKind::kPrefill, 600, 1);
    run.Step(trace::StepKind::kDecode, 3, 0);
    run.Step(trace::StepKind::kMixed, 2048, 1);
    run.Step(trace::StepKind::kMixed, 2048, 1);
    run.Step(trace::StepKind::kMixed, rest, 1);
    for (int i = 0; i < 6; ++i) run.Step(trace::StepKind::kDecode, 3, 0);
    EXPECT_EQ(run.Left(slow), 0u);
  }
  Traced run;  // prompts of the usual length, one after the other
  for (const int64_t tokens : {600, 500, 610, 590, 640}) run.Step(trace::StepKind::kMixed, tokens, 1);
  for (int i = 0; i < 6; ++i) run.Step(trace::StepKind::kDecode, 3, 0);
  EXPECT_EQ(run.Left(slow), 1u);
}

TEST(LookAlikes, CopiesOfMoreBytesTakeLonger) {
  for (const int64_t bytes : {4096, 20 << 20}) {
    TestRun run(1);
    Hypothesis h;
    h.trouble = Trouble::kSlowOperator;
    h.process = trace::ProcessRow(0);
    for (uint32_t s = 0; s < 12; ++s) {
      const bool slow = s == 5 || s == 7 || s == 8;
      run.AddStep(0, s);
      run.AddSlot(SlotKey::Kind::kGpu, "Memcpy HtoD (Pinned -> Device)", 2'000, slow ? 200 : 1);
      Slot& slot = run.profiles.back().slots.back();
      slot.span = run.AddSpan(0, trace::SpanKind::kCopy, "Memcpy HtoD (Pinned -> Device)", slot.begin, slot.cost);
      run.store.gpu_args.Append(slot.span, trace::GpuArgs{.bytes = slow ? bytes : 4096});
      if (!slow) continue;
      h.steps.push_back(s);
      h.lost_in.push_back(slot.cost);
      h.slot = slot.key;
      h.span = slot.span;
    }
    std::vector<Hypothesis> claims = {h};
    std::vector<trace::Note> notes;
    DropLookAlikes(run.scene(), claims, notes);
    EXPECT_EQ(claims.size(), bytes > 4096 ? 0u : 1u);
  }
}

TEST(LookAlikes, ACopyOfAsManyBytesAsEverIsNotExcusedByStepsWithoutOne) {
  TestRun run(1);
  Hypothesis h;
  h.trouble = Trouble::kSlowOperator;
  h.process = trace::ProcessRow(0);
  for (uint32_t s = 0; s < 24; ++s) {
    run.AddStep(0, s);
    if (s % 3 != 0) continue;
    const bool slow = s >= 9 && s < 18;
    run.AddSlot(SlotKey::Kind::kGpu, "Memcpy DtoH (Device -> Pinned)", 2'000, slow ? 200 : 1);
    Slot& slot = run.profiles.back().slots.back();
    slot.span = run.AddSpan(0, trace::SpanKind::kCopy, "Memcpy DtoH (Device -> Pinned)", slot.begin, slot.cost);
    run.store.gpu_args.Append(slot.span, trace::GpuArgs{.bytes = 4096});
    if (!slow) continue;
    h.steps.push_back(s);
    h.lost_in.push_back(slot.cost);
    h.slot = slot.key;
    h.span = slot.span;
  }
  std::vector<Hypothesis> claims = {h};
  std::vector<trace::Note> notes;
  DropLookAlikes(run.scene(), claims, notes);
  EXPECT_EQ(claims.size(), 1u);
}

TEST(LookAlikes, TheFirstCallWithNewSizesIsSlow) {
  Traced run;
  for (int i = 0; i < 3; ++i) run.Step(trace::StepKind::kPrefill, 60, 1);
  trace::Store& store = run.store;
  store.tracks.push_back({.process = trace::ProcessRow(0), .first_span = 0, .span_count = 3});
  for (int i = 0; i < 3; ++i) {
    store.spans.name.push_back(store.strings.Intern("aten::mm"));
    store.spans.begin.push_back(i * 20'000'000);
    store.spans.duration.push_back(1'000'000);
    trace::OpArgs args;
    args.input_dims = store.strings.Intern(i == 2 ? "[[248, 256]]" : "[[60, 256]]");
    store.op_args.Append(static_cast<uint32_t>(i), args);
  }
  Hypothesis h = Pause(600'000'000, {2});
  h.in_gap = false;
  h.slot.kind = SlotKey::Kind::kOp;
  h.span = 2;
  EXPECT_EQ(run.Left(h), 0u);
  h.span = 1;
  EXPECT_EQ(run.Left(h), 1u);
}

TEST(LookAlikes, OnePauseWithoutAFreeProcessorIsANote) {
  constexpr Nanos kHalf = 500'000'000;
  for (const double others : {1.0, 0.0}) {
    Traced run;
    for (int i = 0; i < 9; ++i) run.Step(trace::StepKind::kDecode, 2, 0);
    const auto add = [&](const std::string& process, const std::string& name, double rate) {
      const trace::CounterRow row(static_cast<uint32_t>(run.store.counter_series.size()));
      trace::CounterSeries series;
      series.file = trace::FileRow(0);
      series.process_name = process;
      series.name = name;
      run.store.counter_series.push_back(series);
      for (int i = 0; i < 10; ++i)
        run.store.counters.push_back({i * kHalf, row, static_cast<uint32_t>(i), 0.5 * rate * i});
    };
    add("Worker", "cpu_s", 0.1);
    add("", "busy_s", 0.1 + 1.9 * others);
    add("", "idle_s", 1.9 * (1 - others));
    const CpuWitness witness(run.store);
    Hypothesis pause = Pause(560'000'000);
    pause.worst_begin = 2 * kHalf;
    pause.process = trace::ProcessRow(0);
    std::vector<Hypothesis> claims = {pause};
    DropLookAlikes(Scene{run.store, run.trees, run.profiles, run.normals, &witness}, claims, run.notes);
    EXPECT_EQ(claims.size(), others > 0 ? 0u : 1u);
  }
}

TEST(LookAlikes, MemoryThatTheSystemHandsOutIsNoSlowOperator) {
  for (const Nanos lost : {Nanos{900'000}, Nanos{9'000'000}}) {  // of steps of 15 ms
    for (const char* name : {"aten::empty", "aten::mm"}) {
      Traced run;
      for (int i = 0; i < 20; ++i) run.Step(trace::StepKind::kDecode, 1, 0);
      run.store.spans.name.push_back(run.store.strings.Intern(name));
      Hypothesis slow;
      slow.trouble = Trouble::kSlowOperator;
      slow.slot.kind = SlotKey::Kind::kOp;
      slow.span = 0;
      for (uint32_t s = 5; s < 11; ++s) {
        slow.steps.push_back(s);
        slow.lost_in.push_back(lost);
        slow.lost += lost;
      }
      const bool room = std::string_view(name) == "aten::empty" && lost < 1'000'000;
      EXPECT_EQ(run.Left(slow), room ? 0u : 1u) << name << lost;
    }
  }
}

TEST(LookAlikes, AttentionGrowsWithItsContext) {
  for (const bool grows : {true, false}) {
    for (const char* name : {"paged_attention_v2", "aten::mm"}) {
      Traced run;
      for (int i = 0; i < 40; ++i) run.Step(trace::StepKind::kDecode, 1, 0);
      run.store.spans.name.push_back(run.store.strings.Intern(name));
      Hypothesis slow;
      slow.trouble = Trouble::kSlowOperator;
      slow.span = 0;
      for (uint32_t s = 10; s < 34; ++s) {
        slow.steps.push_back(s);
        slow.lost_in.push_back(grows ? 100'000 + 5'000 * s : 200'000);
      }
      const bool attention = std::string_view(name) != "aten::mm";
      EXPECT_EQ(run.Left(slow), grows && attention ? 0u : 1u) << name << grows;
    }
  }
}

}  // namespace
}  // namespace teller::locate
