#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "locate/deviation.hpp"
#include "locate/gap_hits.hpp"
#include "locate/hypothesis.hpp"
#include "locate/level_shift.hpp"
#include "locate/maybe.hpp"
#include "locate/operator_costs.hpp"
#include "locate/operator_shift.hpp"
#include "locate/operator_size.hpp"
#include "locate/resources.hpp"
#include "locate/starvation.hpp"
#include "locate/stretch.hpp"
#include "ml/gmm.hpp"
#include "ml/robust.hpp"
#include "tree/collectives.hpp"

namespace teller::locate {

namespace {

// A share of a step's expected time below which a deviation does not matter to a user.
constexpr double kMatters = 0.15;
// An operator that explains at least this part of what a step lost is what the step is slow for.
constexpr double kDominates = 0.5;
// Everything else may be stretched by this much before a slow operator is no longer special.
constexpr double kRestAtMost = 1.5;
constexpr double kRestSlower = 1.25;  // from here on it is no longer as usual
constexpr double kLeastGaps = 40e6;   // ns in all: less is a busy machine's daily life...
constexpr double kLeastGapSteps = 3;  // ... or typical steps, where a device does the work
constexpr double kGapShare = 0.08;    // of the time from the first to the last long gap: less is not felt
constexpr double kStretched = 2.5;    // steps beside gaps that are this much longer than usual are no "as usual"
// A pause is longer than this many typical steps.
constexpr double kPauseSteps = 1.0;
// A pause inside a step is at least this part of what the step takes.
constexpr double kInside = 0.7;
constexpr double kInsideOfUnlike = 2.0;
// Repeated trouble shows in at least this many steps.
constexpr size_t kFewestRepeats = 3;
const SlotKey kGap{0, 0, SlotKey::Kind::kGap};
// A place is slow from this factor on; kernels vary less than host code.
constexpr double kSlowPlace = 3.0;
constexpr double kSlowKernel = 1.4;
constexpr double kNoiseFloor = 0.05;  // scale of an operator's excess in quiet steps, as a share of the step

class Process {
 public:
  Process(const Scene& scene, trace::ProcessRow row, std::vector<uint32_t> steps, size_t processes)
      : scene_(scene),
        row_(row),
        all_(std::move(steps)),
        table_(scene, all_),
        processes_(static_cast<double>(processes)),
        device_(UsesDevice(scene, row)),
        waits_for_ranks_(device_ && !scene.trees.collectives.empty()) {
    std::vector<double> own;
    std::vector<double> tops;
    for (const uint32_t s : all_) {
      own.push_back(static_cast<double>(Profile(s).own()));
      if (!Normal(s).judged || Normal(s).expected_own <= 0) continue;
      deviations_.push_back(Deviate(s));
      tops.push_back(deviations_.back().top);
    }
    typical_ = std::max(1.0, ml::Quantile(own, 0.4));
    usual_top_ = std::max(ml::Quantile(tops, 0.5), 0.02 * typical_);
    std::vector<double> opaque;
    for (const auto& d : deviations_) {
      if (Profile(d.step).opaque) opaque.push_back(std::log(std::max(d.ratio, 0.05)));
    }
    opaque_spread_ = std::max(ml::RobustScale(opaque), 0.1);
  }

  void Search(std::vector<Hypothesis>& out) {
    const size_t before = out.size();
    SearchPauses(out);
    SearchOperators(out);
    SearchPlaces(out);
    for (const auto kind : {SlotKey::Kind::kOp, SlotKey::Kind::kGpu}) {
      if (auto h = FindShiftedOperator(scene_, table_, kind, deviations_, Start(Trouble::kSlowOperator)))
        out.push_back(std::move(*h));
    }
    SearchGaps(out);
    if (device_) SearchGapShift(out);
    if (auto stretched = FindStretch(scene_, Start(Trouble::kStarvation), deviations_, typical_)) {
      out.push_back(std::move(*stretched));
    } else if (auto starved = FindStarvation(scene_, Start(Trouble::kStarvation), deviations_, typical_)) {
      out.push_back(std::move(*starved));
    }
    for (size_t i = before; i < out.size(); ++i) {
      if (out[i].trouble == Trouble::kSlowOperator && MayTakeMore(scene_, out[i]))
        out[i].false_alarm = std::max(out[i].false_alarm, kMaybe);
    }
  }

 private:
  const StepProfile& Profile(uint32_t s) const { return scene_.profiles[s]; }
  const StepNormal& Normal(uint32_t s) const { return scene_.normals[s]; }

  Deviation Deviate(uint32_t s) const {
    const StepProfile& p = Profile(s);
    const StepNormal& n = Normal(s);
    Deviation d;
    d.step = s;
    // What lies beside a collective depends on the other ranks and says little about this process.
    d.expected = std::max(1.0, static_cast<double>(n.expected_own - n.expected_beside));
    d.own = static_cast<double>(p.own() - p.beside);
    double waited = 0;
    for (size_t k = 0; k < p.slots.size(); ++k) {
      if (p.slots[k].key.kind == SlotKey::Kind::kGpu) continue;
      // A device waits for other ranks in its collectives, and the host for the device: nothing of that is its own.
      const auto excess = static_cast<double>(p.slots[k].cost - n.expected[k]);
      if (waits_for_ranks_ && WaitsForOthers(scene_, p.slots[k])) {
        if (!p.slots[k].waits) waited += excess;
        continue;
      }
      if (excess < 0.01 * d.expected || excess < 0.5 * static_cast<double>(n.expected[k])) continue;
      d.lost += excess;
      const double piece = std::min(excess, static_cast<double>(p.slots[k].largest));
      if (piece > d.top) {
        d.top = piece;
        d.top_slot = k;
      }
    }
    d.own = std::max(1.0, d.own - waited);
    d.net = d.own - d.expected;
    d.ratio = d.own / d.expected;
    d.gap_lost = GapLost(s);
    return d;
  }

  /// Time before a step that its process lost while work was there. Does not depend on the step's shape.
  double GapLost(uint32_t s) const {
    const Nanos usual = Normal(s).expected_gap;
    return Profile(s).gap / 3 > usual ? static_cast<double>(Profile(s).gap - usual) : 0.0;
  }

  Hypothesis Start(Trouble trouble) const {
    Hypothesis h;
    h.trouble = trouble;
    h.process = row_;
    h.rank = scene_.store.processes[row_.value()].rank;
    return h;
  }

  void SearchPauses(std::vector<Hypothesis>& out) const {
    Hypothesis h = Start(Trouble::kPause);
    const double floor = std::max({kPauseSteps * typical_, static_cast<double>(PauseFloor(device_)), 8 * usual_top_});
    std::vector<SlotKey> places;
    std::vector<const Deviation*> others;
    double hit_size = typical_;  // of the worst one's step
    std::map<uint32_t, const Deviation*> judged;
    for (const auto& d : deviations_) judged[d.step] = &d;
    for (const uint32_t s : all_) {
      const StepProfile& p = Profile(s);
      const trace::Step& step = scene_.trees.steps[s];
      if (const double lost = GapLost(s); lost >= floor) {
        AddLoss(h, s, lost, step.begin - p.gap, step.begin);
        NoteWorst(h, {p.gap, step.begin - p.gap, kNoSpan, Normal(s).expected_gap, kGap, true});
        places.push_back(kGap);
      }
      const auto found = judged.find(s);
      if (found == judged.end()) continue;
      const Deviation& d = *found->second;
      // Of an opaque step only the whole is known: it must stand out from how much such steps vary. What is normal for
      // a step without equals is a guess from others.
      const double most = Normal(s).same_shape ? kInside : kInsideOfUnlike;
      const bool stands_out = p.opaque ? std::log(d.ratio) >= 5 * opaque_spread_ : d.top >= most * d.expected;
      if (d.top < floor || d.top < 0.6 * d.lost || !stands_out) {
        others.push_back(&d);
        continue;
      }
      const Slot& slot = p.slots[d.top_slot];
      AddLoss(h, s, d.top, slot.begin, slot.begin + slot.largest);
      if (slot.largest > h.worst) hit_size = d.expected;
      NoteWorst(h, {slot.largest, slot.begin, slot.span, Normal(s).expected[d.top_slot], slot.key});
      // Where in an opaque step it was is not known: each is a place of its own.
      places.push_back(p.opaque ? SlotKey{0, s, SlotKey::Kind::kHost} : slot.key);
    }
    if (h.steps.empty() || IsHabit(places)) return;
    const double over = static_cast<double>(h.worst - h.usual) / std::max(Noise(others, hit_size), 1.0);
    // The noise is the largest of that many steps, so one as large is expected once in as many; the tail is heavy.
    const double few = std::max(1.0, 20.0 / static_cast<double>(others.size() + 1));
    h.false_alarm = std::min(1.0, few * std::pow(over, -3.0));
    for (size_t i = 1; i < h.steps.size(); ++i) h.false_alarm *= 0.1;
    out.push_back(std::move(h));
  }

  /// Largest interruption of the steps that did not stand still, as it would be in a step that takes `size`. A machine
  /// that was slower for a while is no interruption: what the steps around lost as well is left out. Of a larger step
  /// the normal is known less exactly, in proportion to it.
  double Noise(const std::vector<const Deviation*>& others, double size) const {
    constexpr size_t kAround = 3;
    double noise = usual_top_;
    for (size_t i = 0; i < others.size(); ++i) {
      std::vector<double> around;
      for (size_t k = i > kAround ? i - kAround : 0; k < std::min(others.size(), i + kAround + 1); ++k) {
        if (k != i) around.push_back(others[k]->top / others[k]->expected);
      }
      const double usual = ml::Quantile(around, 0.5) * others[i]->expected;
      noise = std::max(noise, std::min(1.0, size / others[i]->expected) * (others[i]->top - usual));
    }
    return noise;
  }

  /// The same operator every time is a slow operator, the gap every time is the scheduler's work, and very many are no
  /// pauses but a slow process.
  bool IsHabit(const std::vector<SlotKey>& places) const {
    if (places.size() <= kFewestRepeats) return false;
    std::map<SlotKey, size_t> counts;
    for (const auto& place : places) ++counts[place];
    for (const auto& [place, count] : counts) {
      if (2 * count > places.size()) return true;
    }
    return places.size() * 3 > all_.size();
  }

  std::string_view Text(uint32_t name) const { return scene_.store.text(trace::StringId(name)); }

  /// The operator a step is slow for: of those that explain most, the innermost.
  const std::pair<const uint32_t, OperatorCost>* Innermost(uint32_t s, const OperatorCosts& names) const {
    double most = 0;
    for (const auto& [name, c] : names) most = std::max(most, c.excess());
    const std::pair<const uint32_t, OperatorCost>* best = nullptr;
    int deepest = -1;
    for (const auto& entry : names) {
      if (entry.second.excess() < 0.75 * most || entry.second.excess() <= 0) continue;
      const int depth = scene_.store.spans.depth[Profile(s).slots[entry.second.top_slot].span];
      // Equals by name: ids follow the order of the file and must not decide.
      const bool first = depth == deepest && Text(entry.first) < Text(best->first);
      if (depth > deepest || first) {
        deepest = depth;
        best = &entry;
      }
    }
    return best;
  }

  void SearchOperators(std::vector<Hypothesis>& out) const {
    for (const auto kind : {SlotKey::Kind::kOp, SlotKey::Kind::kGpu}) {
      std::map<uint32_t, std::vector<std::pair<uint32_t, OperatorCost>>> hits;  // name -> (deviation index, cost)
      std::vector<double> quiet;  // largest excess share of steps without a hit
      std::vector<double> total(deviations_.size(), 0);
      for (uint32_t i = 0; i < deviations_.size(); ++i) {
        const auto names = table_.Of(deviations_[i].step, kind);
        const auto* worst = Innermost(deviations_[i].step, names);
        if (worst == nullptr) continue;
        double gpu_expected = 0;
        double gpu_net = 0;
        for (const auto& [name, c] : names) {
          gpu_expected += c.expected;
          gpu_net += c.excess();
        }
        const bool gpu = kind == SlotKey::Kind::kGpu;
        total[i] = gpu ? gpu_expected : deviations_[i].expected;
        const OperatorCost& c = worst->second;
        // Calls that an equal number of peers make too are in nobody's expectation but still net loss.
        const double net = gpu ? gpu_net : std::max(deviations_[i].net, c.excess());
        // On a noisy machine the rest is stretched too; then the operator must stand out from it by its own factor.
        const double rest =
            gpu ? 1.0 : (deviations_[i].expected + net - c.cost) / std::max(deviations_[i].expected - c.expected, 1.0);
        const bool dominates = c.excess() >= kDominates * net ||
                               (c.excess() >= 0.25 * net && c.cost >= 3 * std::max(rest, 1.0) * c.expected);
        if (c.excess() >= kMatters * total[i] && c.cost >= 1.4 * c.expected && dominates) {
          hits[worst->first].emplace_back(i, c);
        } else {
          quiet.push_back(std::max(0.0, c.excess()) / std::max(total[i], 1.0));
        }
      }
      for (auto& [name, list] : hits) AddOperator(kind, list, quiet, total, out);
    }
  }

  /// True when the hits' factor is clear of how much the operator varies in the calm quarter of the steps.
  bool StandsOut(SlotKey::Kind kind, uint32_t name, const std::vector<std::pair<uint32_t, OperatorCost>>& hits) const {
    std::vector<double> logs;
    for (const auto& d : deviations_) {
      const auto names = table_.Of(d.step, kind);
      const auto it = names.find(name);
      // A step without the operator is as calm as can be.
      const bool has = it != names.end() && it->second.cost > 0;
      logs.push_back(has ? std::log(it->second.cost / std::max(it->second.expected, 0.01 * it->second.cost)) : 0.0);
    }
    const double calm = ml::Quantile(logs, 0.25);
    const double spread = std::max(0.08, calm - ml::Quantile(logs, 0.05));
    std::vector<double> hit_logs;
    for (const auto& [i, c] : hits) hit_logs.push_back(std::log(c.cost / std::max(c.expected, 0.01 * c.cost)));
    return ml::Quantile(hit_logs, 0.5) - std::max(calm, 0.0) >= 4 * spread;
  }

  /// Under starvation an operator or place is stretched like the rest of its steps; a slow one stands out even where it
  /// slows the rest a bit. A host that computes and has become slower by a quarter shares its core or its memory: that
  /// may slow one operator nearly twice as much as another.
  bool IsStretchedLikeTheRest(double rest_ratio, double cost, double expected, double rest_expected) const {
    constexpr double kFurther = 3;  // times as much as the rest
    const double further = cost / std::max(expected, 0.01 * rest_expected) / rest_ratio;
    return rest_ratio > kStretched || (rest_ratio > kRestAtMost && further < kFurther) ||
           (!device_ && rest_ratio > kRestSlower && further < kSharedCore);
  }

  void AddOperator(SlotKey::Kind kind, const std::vector<std::pair<uint32_t, OperatorCost>>& hits,
                   const std::vector<double>& quiet, const std::vector<double>& total,
                   std::vector<Hypothesis>& out) const {
    if (hits.size() < kFewestRepeats) return;
    std::vector<uint32_t> steps;
    for (const auto& [i, c] : hits) steps.push_back(deviations_[i].step);
    const bool sampled = !Profile(steps.front()).opaque;
    if (!IsSteady(steps, [&](uint32_t s) { return Normal(s).judged && Profile(s).opaque != sampled; })) return;
    if (!StandsOut(kind, Profile(deviations_[hits.front().first].step).slots[hits.front().second.top_slot].key.name,
                   hits))
      return;
    Hypothesis h = Start(Trouble::kSlowOperator);
    double rest = 0;
    double rest_expected = 0;
    double cost = 0;
    double cost_expected = 0;
    double concentrated = 0;
    double log_chance = 0;
    const double noise = std::max(ml::Quantile(quiet, 0.7), kNoiseFloor);
    for (const auto& [i, c] : hits) {
      const Deviation& d = deviations_[i];
      const Slot& slot = Profile(d.step).slots[c.top_slot];
      const double excess = c.excess();
      const trace::Step& step = scene_.trees.steps[d.step];
      AddLoss(h, d.step, excess, std::max(step.begin, slot.begin),
              std::min(step.end, slot.begin + std::max(slot.total, slot.largest)));
      cost += c.cost;
      cost_expected += c.expected;
      if (c.top >= 0.5 * excess) concentrated += 1;
      rest += d.own - (kind == SlotKey::Kind::kOp ? c.cost : 0);
      rest_expected += d.expected - (kind == SlotKey::Kind::kOp ? c.expected : 0);
      NoteWorst(h, {slot.total, slot.begin, slot.span, Normal(d.step).expected_total[c.top_slot], slot.key});
      log_chance += std::log(std::max(ml::UpperTail(std::min(excess / std::max(total[i], 1.0) / noise, 8.0)), 1e-12));
    }
    const auto n = static_cast<double>(hits.size());
    h.whole_operator = true;
    h.rest_ratio = rest / std::max(rest_expected, 1.0);
    if (IsStretchedLikeTheRest(h.rest_ratio, cost, cost_expected, rest_expected)) return;
    if (kind == SlotKey::Kind::kOp && IsNotFelt(scene_, h)) return;
    if (concentrated >= 0.4 * n) return;  // one place at a time: SearchPlaces tells a slow place from preemption
    // One claim per operator name and step is tried; that many chances it had.
    const double tries = static_cast<double>(deviations_.size()) * 50.0;
    h.false_alarm = std::clamp(std::exp(std::log(tries) + log_chance), 1e-9, 1.0);
    out.push_back(std::move(h));
  }

  /// One place that costs far more than its normal in step after step. Preemption also adds time to places, but to
  /// other ones each time: with N places of which m are hit in a step, the same one is hit n times by chance in about
  /// S * N * (m / N)^n of runs of S steps.
  void SearchPlaces(std::vector<Hypothesis>& out) const {
    std::map<SlotKey, std::vector<PlaceHit>> hits;
    for (uint32_t i = 0; i < deviations_.size(); ++i) {
      if (Profile(deviations_[i].step).opaque) continue;
      CollectPlaceHits(i, hits);
    }
    for (const auto& [place, list] : hits) AddPlace(place, list, out);
  }

  struct PlaceHit {
    uint32_t deviation = 0;
    size_t slot = 0;
    double excess = 0;
    double chance = 1;  ///< that preemption hits this place in this step
  };

  void CollectPlaceHits(uint32_t i, std::map<SlotKey, std::vector<PlaceHit>>& hits) const {
    const Deviation& d = deviations_[i];
    const StepProfile& p = Profile(d.step);
    std::vector<double> excesses;
    std::vector<PlaceHit> mine;
    double gpu_expected = 0;
    for (size_t k = 0; k < p.slots.size(); ++k) {
      if (p.slots[k].key.kind == SlotKey::Kind::kGpu) gpu_expected += static_cast<double>(Normal(d.step).expected[k]);
    }
    for (size_t k = 0; k < p.slots.size(); ++k) {
      const Slot& slot = p.slots[k];
      const auto expected = static_cast<double>(Normal(d.step).expected[k]);
      const double excess = static_cast<double>(slot.cost) - expected;
      if (excess <= 0) continue;
      excesses.push_back(excess);
      const double whole = slot.key.kind == SlotKey::Kind::kGpu ? gpu_expected : d.expected;
      const double factor = slot.key.kind == SlotKey::Kind::kGpu ? kSlowKernel : kSlowPlace;
      if (excess < kMatters * whole || static_cast<double>(slot.cost) < factor * expected) continue;
      if (slot.waits || IsWaitingCall(scene_.store.text(trace::StringId(slot.key.name)))) continue;
      mine.push_back({i, k, excess, 1});
    }
    std::sort(excesses.begin(), excesses.end());
    for (PlaceHit& hit : mine) {
      const auto larger =
          static_cast<double>(excesses.end() - std::lower_bound(excesses.begin(), excesses.end(), 0.5 * hit.excess));
      // A place that takes much of the step also gets much of the preemption.
      const double share = static_cast<double>(Normal(d.step).expected[hit.slot]) / d.expected;
      hit.chance = std::clamp(larger * std::max(1.0 / static_cast<double>(p.slots.size()), share), 0.0, 1.0);
      hits[p.slots[hit.slot].key].push_back(hit);
    }
  }

  void AddPlace(const SlotKey& place, const std::vector<PlaceHit>& list, std::vector<Hypothesis>& out) const {
    if (list.size() < 2) return;
    std::vector<uint32_t> steps;
    double log_chance = 0;
    double large = 0;
    for (const PlaceHit& hit : list) {
      steps.push_back(deviations_[hit.deviation].step);
      log_chance += std::log(std::max(hit.chance, 1e-6));
      if (hit.excess >= 0.4 * deviations_[hit.deviation].expected) large += 1;
    }
    if (list.size() == 2 && large < 2) return;  // twice is only believed when it is no small thing
    const size_t window = Window(steps, [&](uint32_t s) { return Normal(s).judged && !Profile(s).opaque; });
    if (2 * steps.size() < window) return;
    Hypothesis h = Start(place.kind == SlotKey::Kind::kHost ? Trouble::kHostWork : Trouble::kSlowOperator);
    double rest = 0;
    double rest_expected = 0;
    double cost = 0;
    double cost_expected = 0;
    for (const PlaceHit& hit : list) {
      const Deviation& d = deviations_[hit.deviation];
      const StepProfile& p = Profile(d.step);
      const Slot& slot = p.slots[hit.slot];
      const Nanos usual = Normal(d.step).expected[hit.slot];
      AddLoss(h, d.step, hit.excess, slot.begin, slot.begin + std::max(slot.largest, slot.cost));
      NoteWorst(h, {slot.cost, slot.begin, slot.span, usual, slot.key});
      const bool gpu = place.kind == SlotKey::Kind::kGpu;
      cost += static_cast<double>(slot.cost);
      cost_expected += static_cast<double>(usual);
      rest += d.own - (gpu ? 0.0 : static_cast<double>(slot.cost));
      rest_expected += d.expected - (gpu ? 0.0 : static_cast<double>(usual));
    }
    h.rest_ratio = rest / std::max(rest_expected, 1.0);
    if (place.kind != SlotKey::Kind::kGpu && IsStretchedLikeTheRest(h.rest_ratio, cost, cost_expected, rest_expected))
      return;
    if (place.kind == SlotKey::Kind::kOp && IsNotFelt(scene_, h)) return;
    // As many places share the preemption as this one's part of it goes into the whole.
    const double typical_chance = std::exp(log_chance / static_cast<double>(list.size()));
    const double places = std::min(static_cast<double>(Profile(steps.front()).slots.size()), 1.0 / typical_chance);
    for (const PlaceHit& hit : list) log_chance += std::log(ChanceOfPiece(hit.excess, steps));
    // Chance could have begun in any step of any process, and left out any of the steps in between; and places are only
    // one of the two ways in which operators are searched.
    const double tries = 2 * static_cast<double>(deviations_.size()) * places * processes_;
    h.false_alarm = std::clamp(std::exp(std::log(tries) + LogChoose(window, list.size()) + log_chance), 1e-9, 1.0);
    out.push_back(std::move(h));
  }

  static double LogChoose(size_t n, size_t k) {
    return std::lgamma(static_cast<double>(n) + 1) - std::lgamma(static_cast<double>(k) + 1) -
           std::lgamma(static_cast<double>(n - k) + 1);
  }

  /// How often other steps lose half as much at once.
  double ChanceOfPiece(double excess, const std::vector<uint32_t>& hits) const {
    double others = 0;
    double as_large = 0;
    for (const auto& d : deviations_) {
      if (std::binary_search(hits.begin(), hits.end(), d.step)) continue;
      others += 1;
      if (d.top >= 0.5 * excess) as_large += 1;
    }
    return (as_large + 1) / (others + 2);
  }

  void SearchGaps(std::vector<Hypothesis>& out) const {
    Hypothesis h = Start(Trouble::kGapWork);
    double own = 0;
    double expected = 0;
    std::vector<GapHit> hits;
    for (const uint32_t s : all_) {
      const double lost = GapLost(s);
      if (lost >= 2 * kMatters * typical_) hits.push_back({s, lost});
    }
    hits = MainHits(std::move(hits));
    for (const auto& [s, lost] : hits) {
      const trace::Step& step = scene_.trees.steps[s];
      AddLoss(h, s, lost, step.begin - Profile(s).gap, step.begin);
      NoteWorst(h, {Profile(s).gap, step.begin - Profile(s).gap, kNoSpan, Normal(s).expected_gap, kGap, true});
      if (!Normal(s).judged) continue;
      own += static_cast<double>(Profile(s).own());
      expected += static_cast<double>(Normal(s).expected_own);
    }
    if (h.steps.size() < kFewestRepeats) return;
    if (!IsSteady(h.steps, [&](uint32_t s) { return Profile(s).gap > 0; })) return;
    h.in_gap = true;
    h.spread = Spread(hits);
    h.rest_ratio = own / std::max(expected, 1.0);
    if (h.rest_ratio > kStretched) return;
    if (static_cast<double>(h.lost) <
        std::max(device_ ? kLeastGapSteps * typical_ : kLeastGaps, kGapShare * static_cast<double>(h.end - h.onset)))
      return;
    h.false_alarm = std::clamp(std::pow(0.1, static_cast<double>(h.steps.size()) - 1), 1e-9, 1.0);
    out.push_back(std::move(h));
  }

  /// Gaps that become longer for a while and differ little otherwise: an engine's own work between two steps.
  void SearchGapShift(std::vector<Hypothesis>& out) const {
    constexpr ShiftRule kRule{.least = 0.5, .spread_floor = 0.15, .least_z = 4, .fewest = 5};
    std::vector<double> logs;
    std::vector<uint32_t> steps;
    for (const uint32_t s : all_) {
      if (Profile(s).gap <= 0 || Normal(s).expected_gap <= 0) continue;
      logs.push_back(std::log(static_cast<double>(Profile(s).gap) / static_cast<double>(Normal(s).expected_gap)));
      steps.push_back(s);
    }
    const auto shift = TestStretch(logs, HighestStretch(logs, kRule.least), kRule);
    if (!shift) return;
    Hypothesis h = Start(Trouble::kGapWork);
    for (size_t k = shift->at.first; k < shift->at.last; ++k) {
      if (logs[k] < shift->Middle()) continue;
      const Nanos gap = Profile(steps[k]).gap;
      const Nanos begin = scene_.trees.steps[steps[k]].begin;
      const double lost = static_cast<double>(gap) * (1 - std::exp(shift->calm - logs[k]));
      AddLoss(h, steps[k], lost, begin - gap, begin);
      NoteWorst(h, {gap, begin - gap, kNoSpan, gap - static_cast<Nanos>(lost), kGap, true});
    }
    if (static_cast<double>(h.lost) < kGapShare * static_cast<double>(h.end - h.onset)) return;
    h.in_gap = true;
    h.false_alarm = std::min(1.0, shift->false_alarm * processes_);
    out.push_back(std::move(h));
  }

  /// True when most steps between the first and the last hit that could be hit were: trouble that lasts, not stray
  /// noise.
  template <class CanBeHit>
  bool IsSteady(const std::vector<uint32_t>& hits, CanBeHit can_be_hit) const {
    return 2 * hits.size() >= Window(hits, can_be_hit);
  }

  /// Steps between the first and the last hit that could have been hit.
  template <class CanBeHit>
  size_t Window(const std::vector<uint32_t>& hits, CanBeHit can_be_hit) const {
    size_t possible = 0;
    for (const uint32_t s : all_) {
      if (s >= hits.front() && s <= hits.back() && can_be_hit(s)) ++possible;
    }
    return possible;
  }

  const Scene& scene_;
  trace::ProcessRow row_;
  std::vector<uint32_t> all_;
  OperatorTable table_;
  double processes_ = 1;
  bool device_ = false;           ///< the work is done on a device
  bool waits_for_ranks_ = false;  ///< which takes part in collectives
  std::vector<Deviation> deviations_;
  double typical_ = 0;
  double usual_top_ = 0;
  double opaque_spread_ = 0.1;  ///< of log(own / expected) over opaque steps
};

}  // namespace

std::vector<Hypothesis> SearchVertical(const Scene& scene) {
  std::map<uint32_t, std::vector<uint32_t>> by_process;
  for (uint32_t i = 0; i < scene.trees.steps.size(); ++i) by_process[scene.trees.steps[i].process.value()].push_back(i);
  std::vector<Hypothesis> out;
  for (auto& [process, steps] : by_process) {
    Process(scene, trace::ProcessRow(process), std::move(steps), by_process.size()).Search(out);
  }
  return out;
}

}  // namespace teller::locate
