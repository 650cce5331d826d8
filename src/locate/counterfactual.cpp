#include "locate/counterfactual.hpp"

#include <algorithm>
#include <numeric>

#include "locate/job_steps.hpp"
#include "locate/resources.hpp"

namespace teller::locate {

namespace {

using retime::Changes;

/// Translates a claim into changes of the run.
class Repair {
 public:
  Repair(const Scene& scene, const Hypothesis& claim) : scene_(scene), claim_(claim) {}

  Changes Make() {
    // Re-timing keeps what lies between a send and its receive: it cannot tell what a faster link would save.
    if (claim_.sent) return {};
    if (claim_.trouble == Trouble::kSlowTransfer) {
      for (const uint32_t c : claim_.collectives) {
        changes_.transfers.push_back({c, Share(claim_.usual, scene_.trees.collectives[c].transfer)});
      }
      return std::move(changes_);
    }
    for (const InsidePause& pause : claim_.inside) {
      const Nanos transfer = scene_.trees.collectives[pause.collective].transfer;
      changes_.transfers.push_back({pause.collective, Share(transfer - pause.lost, transfer)});
    }
    for (size_t i = 0; i < claim_.steps.size(); ++i) {
      if (!IsInside(claim_.steps[i], claim_.lost_in[i])) MendStep(claim_.steps[i], claim_.lost_in[i]);
    }
    return std::move(changes_);
  }

 private:
  const StepProfile& Profile(uint32_t step) const { return scene_.profiles[step]; }
  const StepNormal& Normal(uint32_t step) const { return scene_.normals[step]; }

  /// True where all of a step's loss lies inside of collectives.
  bool IsInside(uint32_t step, Nanos lost) const {
    const auto [begin, end] =
        std::equal_range(claim_.inside.begin(), claim_.inside.end(), InsidePause{.step = step},
                         [](const InsidePause& a, const InsidePause& b) { return a.step < b.step; });
    for (auto pause = begin; pause != end; ++pause) lost -= pause->lost;
    return lost <= 0;
  }

  void MendStep(uint32_t step, Nanos lost) {
    const trace::Step& s = scene_.trees.steps[step];
    switch (claim_.trouble) {
      case Trouble::kSlowOperator: return MendOperator(step);
      case Trouble::kHostWork: return MendPlace(step, &claim_.slot);
      case Trouble::kPause:
        if (!claim_.in_gap) return MendPlace(step, nullptr);
        [[fallthrough]];
      case Trouble::kSlowSave:
      case Trouble::kGapWork: {
        const Nanos gap = std::max<Nanos>(Profile(step).gap, claim_.trouble == Trouble::kSlowSave ? s.gap_before : 0);
        return Scale(s.span, s.begin - gap, s.begin, Share(gap - lost, gap));
      }
      case Trouble::kStarvation: return MendStarved(s);
      case Trouble::kSlowDevice: return MendDevice(step, lost);
      case Trouble::kSlowTransfer:
      case Trouble::kLateRank: return;
    }
  }

  /// Who takes processors from one rank takes them from the ranks beside it: all that are stretched then.
  void MendStarved(const trace::Step& starved) {
    constexpr double kStretched = 1.2;
    for (uint32_t other = 0; other < scene_.trees.steps.size(); ++other) {
      const trace::Step& s = scene_.trees.steps[other];
      const bool meanwhile = s.begin < starved.end && s.end > starved.begin;
      const auto expected = static_cast<double>(Normal(other).expected_own);
      const auto own = static_cast<double>(Profile(other).own());
      if (!meanwhile || !Normal(other).judged || own < kStretched * expected) continue;
      Scale(s.span, s.begin, s.end, Share(Normal(other).expected_own, Profile(other).own()));
    }
  }

  /// All kernels of the step, by the same factor.
  void MendDevice(uint32_t step, Nanos lost) {
    const auto took = static_cast<Nanos>(DeviceCost(scene_, step).took);
    for (const Slot& slot : Profile(step).slots) {
      if (slot.key.kind != SlotKey::Kind::kGpu || slot.span == kNoSpan) continue;
      changes_.spans.push_back({trace::SpanRow(slot.span), Share(took - lost, took)});
    }
  }

  /// Steps that nobody judges (the profiler's first one) have no normal to go back to, though a pause may touch them.
  bool HasNormal(uint32_t step) const { return Normal(step).expected.size() == Profile(step).slots.size(); }

  /// Calls that are too many go, by making all of them shorter.
  void MendCalls(uint32_t step) {
    for (const Slot& slot : Profile(step).slots) {
      if (slot.key.kind != claim_.slot.kind || slot.key.name != claim_.slot.name || slot.span == kNoSpan) continue;
      changes_.spans.push_back({trace::SpanRow(slot.span), claim_.usual_calls / claim_.calls});
    }
  }

  void MendOperator(uint32_t step) {
    if (claim_.calls > 0) return MendCalls(step);
    if (!HasNormal(step)) return;
    const auto& slots = Profile(step).slots;
    for (size_t k = 0; k < slots.size(); ++k) {
      const Slot& slot = slots[k];
      const bool same = claim_.whole_operator ? slot.key.kind == claim_.slot.kind && slot.key.name == claim_.slot.name
                                              : slot.key == claim_.slot;
      if (!same || slot.span == kNoSpan) continue;
      changes_.spans.push_back({trace::SpanRow(slot.span), Share(Normal(step).expected_total[k], slot.total)});
    }
  }

  /// The largest piece of one place; without a key of the place that exceeds its normal most.
  void MendPlace(uint32_t step, const SlotKey* key) {
    if (!HasNormal(step)) return;
    const auto& slots = Profile(step).slots;
    size_t place = slots.size();
    Nanos most = 0;
    for (size_t k = 0; k < slots.size(); ++k) {
      if (slots[k].key.kind == SlotKey::Kind::kGpu || (key != nullptr && slots[k].key != *key)) continue;
      const Nanos excess = slots[k].cost - Normal(step).expected[k];
      if (excess > most) std::tie(place, most) = std::pair(k, excess);
    }
    if (place == slots.size()) return;
    const Slot& slot = slots[place];
    const Nanos piece = std::max<Nanos>(slot.largest, 1);
    const trace::SpanRow lane = slot.span != kNoSpan ? trace::SpanRow(slot.span) : scene_.trees.steps[step].span;
    Scale(lane, slot.begin, slot.begin + piece, Share(piece - most, piece));
  }

  void Scale(trace::SpanRow lane, Nanos begin, Nanos end, double factor) {
    if (!lane.valid()) return;
    const trace::TrackRow track = scene_.store.spans.track[lane.value()];
    if (claim_.trouble == Trouble::kPause) return ScaleStanding(scene_.store, track, begin, end, factor, changes_);
    changes_.times.push_back({track, begin, end, factor});
  }

  const Scene& scene_;
  const Hypothesis& claim_;
  Changes changes_;
};

}  // namespace

std::vector<std::optional<Counterfactual>> TestClaims(const Scene& scene, const std::vector<Hypothesis>& claims,
                                                      size_t most) {
  std::vector<std::optional<Counterfactual>> out(claims.size());
  if (claims.empty()) return out;
  const JobSteps job(scene);
  std::vector<size_t> tested(claims.size());
  std::iota(tested.begin(), tested.end(), size_t{0});
  std::stable_sort(tested.begin(), tested.end(), [&](size_t a, size_t b) { return claims[a].lost > claims[b].lost; });
  tested.resize(std::min(most, tested.size()));
  for (const size_t c : tested) {
    const Changes changes = Repair(scene, claims[c]).Make();
    if (claims[c].steps.empty() || Empty(changes)) continue;
    const JobSteps::Steps after = job.After(changes);
    Counterfactual result;
    Nanos worst = -1;
    for (size_t i = 0; i < claims[c].steps.size(); ++i) {
      const uint32_t step = claims[c].steps[i];
      const Nanos saved = job.Saved(step, after);
      result.saved += saved;
      result.lost += claims[c].lost_in[i];
      if (claims[c].lost_in[i] <= worst) continue;
      worst = claims[c].lost_in[i];
      result.worst = step;
      result.worst_saved = saved;
    }
    out[c] = result;
  }
  return out;
}

}  // namespace teller::locate
