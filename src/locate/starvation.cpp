#include "locate/starvation.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "ml/gmm.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

namespace {

// A stretched step takes at least this many times its normal, a factor that load on a busy machine rarely reaches.
constexpr double kStretched = 2.5;
constexpr size_t kFewestStretched = 3;
constexpr double kCalmSpread = 0.12;     // of log(own / expected) between equal steps of a quiet machine
constexpr double kStretchedSteps = 8.0;  // and in all it costs at least this many typical steps
constexpr double kLeastLost = 50e6;      // ns, and this: less is a busy machine's daily life
constexpr double kOnePiece = 0.5;        // of what a step lost: then it is not spread over the step
constexpr size_t kFewestPieces = 8;      // steps that lost one piece each, to see that places change
constexpr double kSamePlace = 0.3;       // share of such steps at one place from which that place is the trouble

/// A stretched step and how far it stands out, in spreads of calm steps.
struct Stretched {
  const Deviation* deviation = nullptr;
  double z = 0;
};

bool InOnePiece(const Scene& scene, const Deviation& d) {
  return !scene.profiles[d.step].opaque && d.top >= kOnePiece * std::max(d.net, 1.0);
}

/// True when the single pieces lie at places that change from step to step.
bool PlacesChange(const Scene& scene, const std::vector<Stretched>& all) {
  std::map<SlotKey, size_t> places;
  size_t pieces = 0;
  size_t most = 0;
  for (const Stretched& s : all) {
    if (!InOnePiece(scene, *s.deviation)) continue;
    ++pieces;
    most = std::max(most, ++places[scene.profiles[s.deviation->step].slots[s.deviation->top_slot].key]);
  }
  return pieces >= kFewestPieces && static_cast<double>(most) <= kSamePlace * static_cast<double>(pieces);
}

}  // namespace

std::optional<Hypothesis> FindStarvation(const Scene& scene, Hypothesis h, const std::vector<Deviation>& deviations,
                                         double typical) {
  if (deviations.size() < 2 * kFewestStretched) return std::nullopt;
  std::vector<double> logs;
  for (const auto& d : deviations) logs.push_back(std::log(std::max(d.ratio, 0.05)));
  // The low end is what this process does when it gets its CPU; its spread is the machine's ordinary noise.
  const ml::Mixture mixture = ml::FitBestMixture(logs, 3, kCalmSpread);
  const ml::Gaussian& normal = ml::NormalComponent(mixture, 0.15);
  // A fault that lasts may hold most steps in one broad component: then the low end of the sample is the calm.
  const double calm = std::max(0.0, std::min(normal.mean, ml::Quantile(logs, 0.25)));
  const double spread = std::max(kCalmSpread, std::min(normal.sigma, calm - ml::Quantile(logs, 0.05)));
  std::vector<Stretched> stretched;
  for (const auto& d : deviations) {
    const double z = (std::log(std::max(d.ratio, 0.05)) - calm) / spread;
    if (d.ratio >= kStretched * std::exp(calm) && z >= 4) stretched.push_back({&d, z});
  }
  const bool changing = PlacesChange(scene, stretched);
  double log_chance = 0;
  size_t run = 0;
  size_t longest_run = 0;
  uint32_t previous = 0;
  for (const auto& [deviation, z] : stretched) {
    const Deviation& d = *deviation;
    if (!changing && InOnePiece(scene, d)) continue;
    const trace::Step& step = scene.trees.steps[d.step];
    AddLoss(h, d.step, d.net + d.gap_lost, step.begin, step.end);
    if (step.duration() > h.worst) {
      h.worst = step.duration();
      h.worst_begin = step.begin;
      h.usual = static_cast<Nanos>(d.expected);
    }
    run = h.steps.size() > 1 && d.step - previous <= 3 ? run + 1 : 1;
    longest_run = std::max(longest_run, run);
    previous = d.step;
    log_chance += std::log(std::max(ml::UpperTail(std::min(z, 6.0)), 1e-9));
  }
  if (longest_run < kFewestStretched || static_cast<double>(h.lost) < std::max(kStretchedSteps * typical, kLeastLost))
    return std::nullopt;
  h.rest_ratio = 1;
  // Neighbouring steps share the machine's weather: count a run of three as one observation.
  h.false_alarm = std::clamp(std::exp(std::log(static_cast<double>(deviations.size())) + log_chance / 3), 1e-9, 1.0);
  return h;
}

}  // namespace teller::locate
