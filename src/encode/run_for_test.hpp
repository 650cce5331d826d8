#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "base/rng.hpp"
#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::encode {

/// A span as a test states it.
struct TestSpan {
  uint32_t track = 0;
  trace::Nanos begin = 0;
  trace::Nanos duration = 0;
  std::string name;
  trace::SpanKind kind = trace::SpanKind::kOp;
  uint32_t correlation = 0;
};

/// A run of one process made from spans: sorted, nested and linked as `ingest` and `tree` leave it.
struct TestRun {
  trace::Store store;
  trace::Trees trees;

  /// Tracks from `streams` on are GPU streams.
  TestRun(std::vector<TestSpan> spans, uint32_t tracks, uint32_t streams) {
    store.files.push_back({});
    trace::Process process;
    process.file = trace::FileRow(0);
    process.rank = 0;
    store.processes.push_back(process);
    for (int kind = 0; kind < trace::kSpanKinds; ++kind)
      store.categories.push_back({std::to_string(kind), static_cast<trace::SpanKind>(kind)});
    std::stable_sort(spans.begin(), spans.end(), [](const TestSpan& a, const TestSpan& b) {
      return std::tuple(a.track, a.begin, -a.duration) < std::tuple(b.track, b.begin, -b.duration);
    });
    for (uint32_t t = 0; t < tracks; ++t) {
      trace::Track track;
      track.process = trace::ProcessRow(0);
      track.tid = std::to_string(t);
      track.is_stream = t >= streams;
      track.first_span = static_cast<uint32_t>(store.spans.size());
      std::vector<uint32_t> open;
      for (const TestSpan& span : spans) {
        if (span.track == t) Add(span, track.is_stream, open);
      }
      track.span_count = static_cast<uint32_t>(store.spans.size()) - track.first_span;
      store.tracks.push_back(track);
    }
    Link(spans);
  }

  void AddStep(trace::Nanos begin, trace::Nanos end, trace::StepKind kind = trace::StepKind::kDecode) {
    trace::Step step;
    step.process = trace::ProcessRow(0);
    step.index = static_cast<uint32_t>(trees.steps.size());
    step.begin = begin;
    step.end = end;
    step.kind = kind;
    trees.steps.push_back(step);
  }

  /// Steps of one program on a thread, each with calls, launches and kernels; durations vary a little.
  static TestRun Random(uint64_t seed, uint32_t steps) {
    base::Rng rng(seed);
    std::vector<TestSpan> spans;
    std::vector<std::pair<trace::Nanos, trace::Nanos>> bounds;
    const uint32_t layers = 2 + static_cast<uint32_t>(rng.Below(6));
    const uint32_t calls = 2 + static_cast<uint32_t>(rng.Below(5));
    trace::Nanos at = 1000;
    uint32_t correlation = 0;
    for (uint32_t s = 0; s < steps; ++s) {
      const trace::Nanos first = at;
      const size_t mark = spans.size();
      spans.push_back({0, at, 0, "decode step " + std::to_string(s), trace::SpanKind::kAnnotation});
      for (uint32_t l = 0; l < layers; ++l) {
        const size_t layer = spans.size();
        spans.push_back({0, at, 0, "nn.Module: Layer_" + std::to_string(l), trace::SpanKind::kPython});
        for (uint32_t c = 0; c < calls; ++c) {
          const trace::Nanos length = 20'000 * (1 + c) + static_cast<trace::Nanos>(rng.Below(500));
          spans.push_back({0, at + 100, length, "aten::op" + std::to_string(c), trace::SpanKind::kOp});
          if (c % 2 == 0) {
            spans.push_back({0, at + 300, 5'000 + static_cast<trace::Nanos>(rng.Below(200)), "cudaLaunchKernel",
                             trace::SpanKind::kRuntime, ++correlation});
            spans.push_back({1, at + 9'000, 8'000 + static_cast<trace::Nanos>(rng.Below(200)),
                             "void k" + std::to_string(c) + "_kernel<float>(int)", trace::SpanKind::kKernel,
                             correlation});
          }
          at += length + 1'000;
        }
        spans[layer].duration = at - spans[layer].begin;
        at += 10;
      }
      spans[mark].duration = at - first;
      bounds.emplace_back(first, at);
      at += 5'000;
    }
    TestRun run(std::move(spans), 2, 1);
    for (const auto& [begin, end] : bounds) run.AddStep(begin, end);
    return run;
  }

 private:
  void Add(const TestSpan& span, bool stream, std::vector<uint32_t>& open) {
    const auto row = static_cast<uint32_t>(store.spans.size());
    while (!open.empty() && store.spans.end(open.back()) < span.begin + span.duration) open.pop_back();
    while (!open.empty() && store.spans.end(open.back()) <= span.begin) open.pop_back();
    store.spans.begin.push_back(span.begin);
    store.spans.duration.push_back(span.duration);
    store.spans.name.push_back(store.strings.Intern(span.name));
    store.spans.track.push_back(trace::TrackRow(span.track));
    store.spans.category.push_back(static_cast<uint8_t>(span.kind));
    store.spans.parent.push_back(open.empty() ? trace::SpanRow() : trace::SpanRow(open.back()));
    store.spans.depth.push_back(static_cast<uint16_t>(std::min<size_t>(open.size(), 65000)));
    if (span.correlation != 0) {
      trace::GpuArgs args;
      args.correlation = span.correlation;
      store.gpu_args.Append(row, args);
    }
    if (!stream || span.kind == trace::SpanKind::kGpuAnnotation) open.push_back(row);
  }

  void Link(const std::vector<TestSpan>&) {
    for (size_t w = 0; w < store.gpu_args.size(); ++w) {
      if (!trace::IsGpuWork(store.kind(store.gpu_args.row(w)))) continue;
      for (size_t l = 0; l < store.gpu_args.size(); ++l) {
        if (!trace::IsApiCall(store.kind(store.gpu_args.row(l))) ||
            store.gpu_args.value(l).correlation != store.gpu_args.value(w).correlation)
          continue;
        trees.launches.push_back({trace::SpanRow(store.gpu_args.row(l)), trace::SpanRow(store.gpu_args.row(w))});
        break;
      }
    }
  }
};

}  // namespace teller::encode
