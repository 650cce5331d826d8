#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "locate/hypothesis.hpp"

namespace teller::locate {

/// A run for tests, put together as the parts before `locate` would leave it: ranks that take the same steps.
struct TestRun {
  trace::Store store;
  trace::Trees trees;
  std::vector<StepProfile> profiles;
  std::vector<StepNormal> normals;
  base::Rng rng{7};
  double noise = 0.02;  ///< relative

  explicit TestRun(int ranks) {
    store.processes.resize(static_cast<size_t>(ranks));
    for (int r = 0; r < ranks; ++r) store.processes[static_cast<size_t>(r)].rank = r;
  }

  Scene scene() const { return {store, trees, profiles, normals}; }
  Nanos Noisy(double ns) { return static_cast<Nanos>(ns * (1 + noise * 2 * (rng.Unit() + rng.Unit() - 1))); }

  /// The next step of a rank; all of a rank's steps are added before those of the next rank.
  trace::Step& AddStep(int rank, uint32_t index, Nanos duration = 10 * base::kMilli) {
    trace::Step step;
    step.process = trace::ProcessRow(static_cast<uint32_t>(rank));
    step.rank = rank;
    step.index = index;
    step.kind = trace::StepKind::kDecode;
    step.new_tokens = 8;
    step.decode_requests = 8;
    step.begin = base::kSecond + static_cast<Nanos>(index) * 20 * base::kMilli;
    step.end = step.begin + duration;
    step.gap_before = index == 0 ? -1 : 20 * base::kMilli - duration;
    trees.steps.push_back(step);
    StepProfile profile;
    profile.step = static_cast<uint32_t>(trees.steps.size() - 1);
    profiles.push_back(profile);
    StepNormal normal;
    normal.judged = true;
    normal.same_shape = true;
    normals.push_back(normal);
    return trees.steps.back();
  }

  /// Adds a place to the last step. `factor` is how much longer than usual it takes.
  void AddSlot(SlotKey::Kind kind, const std::string& name, double usual, double factor = 1) {
    const Nanos cost = Noisy(usual * factor);
    const auto expected = static_cast<Nanos>(usual);
    StepProfile& profile = profiles.back();
    const auto ordinal = static_cast<uint32_t>(profile.slots.size());
    const bool gpu = kind == SlotKey::Kind::kGpu;
    const uint32_t span = AddSpan(*trees.steps.back().rank, gpu ? trace::SpanKind::kKernel : trace::SpanKind::kOp, name,
                                  trees.steps.back().begin, cost);
    profile.slots.push_back(
        {{store.strings.Intern(name).value(), ordinal, kind}, cost, cost, trees.steps.back().begin, cost, false, span});
    normals.back().expected.push_back(expected);
    normals.back().expected_total.push_back(expected);
    if (gpu) {
      profile.uses_device = true;
      return;
    }
    ++profile.op_count;
    profile.ops += cost;
    normals.back().expected_own += expected;
  }

  /// A span on a track of its own process, so that it can be looked up.
  uint32_t AddSpan(int rank, trace::SpanKind kind, const std::string& name, Nanos begin, Nanos duration) {
    trace::Track track;
    track.process = trace::ProcessRow(static_cast<uint32_t>(rank));
    track.first_span = static_cast<uint32_t>(store.spans.name.size());
    track.span_count = 1;
    store.tracks.push_back(track);
    uint8_t category = 0;
    while (category < store.categories.size() && store.categories[category].kind != kind) ++category;
    if (category == store.categories.size()) store.categories.push_back({std::string(trace::Name(kind)), kind});
    store.spans.name.push_back(store.strings.Intern(name));
    store.spans.category.push_back(category);
    store.spans.track.push_back(trace::TrackRow(static_cast<uint32_t>(store.tracks.size() - 1)));
    store.spans.begin.push_back(begin);
    store.spans.duration.push_back(duration);
    store.spans.depth.push_back(0);
    store.spans.parent.emplace_back();
    return track.first_span;
  }
};

}  // namespace teller::locate
