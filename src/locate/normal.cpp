#include "locate/normal.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <tuple>

#include "locate/program.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

namespace {

using trace::Step;

constexpr double kSimilarCost = 0.15;     // steps whose predicted costs differ by less are comparable
constexpr double kRoughlySimilar = 0.35;  // taken when there are too few of those
constexpr size_t kMostPeers = 24;
constexpr size_t kFewestPeers = 3;
constexpr double kNormalWeight = 0.15;  // a mode with less is luck, not normal behaviour
constexpr size_t kFewestGaps = 8;       // of about one batch size, to know what is normal there
constexpr Nanos kMostGapGrowth = 4;     // of a gap with the batch: more is a fault
constexpr Nanos kLongestGap = 3'600'000'000'000;
constexpr int64_t kMostBatch = 1 << 20;  // a larger count is no batch
constexpr double kApart = 1.5;           // modes closer than this are one mode with noise

/// The numbers that a step's cost depends on, as far as they are known for all steps of a set.
std::vector<double> Features(const Step& step, bool use_work, bool use_tokens, bool use_requests) {
  std::vector<double> x;
  if (use_work) x.push_back(step.work);
  if (use_tokens) x.push_back(static_cast<double>(step.new_tokens));
  if (use_requests) x.push_back(static_cast<double>(step.decode_requests));
  return x;
}

class Fitter {
 public:
  Fitter(const trace::Trees& trees, const std::vector<StepProfile>& profiles)
      : trees_(trees), profiles_(profiles), normals_(profiles.size()), cut_(profiles.size(), false) {}

  std::vector<StepNormal> Run() {
    for (const auto& set : ComparableSets()) FitSet(set);
    return std::move(normals_);
  }

 private:
  /// Processes that run the same program, about as large: same median operator count. Each set is a list of steps.
  std::vector<std::vector<uint32_t>> ComparableSets() const {
    std::map<std::pair<uint32_t, bool>, std::vector<uint32_t>> by_process;  // (process, opaque)
    for (uint32_t i = 0; i < profiles_.size(); ++i) {
      if (trees_.steps[i].kind == trace::StepKind::kEmpty) continue;
      by_process[{trees_.steps[i].process.value(), profiles_[i].opaque}].push_back(i);
    }
    const Programs programs(trees_, profiles_);
    // By rank: what is alike is not alike in a chain, and files may come in any order.
    std::vector<std::vector<uint32_t>> processes;
    for (auto& [process, steps] : by_process) processes.push_back(std::move(steps));
    std::stable_sort(processes.begin(), processes.end(), [&](const auto& a, const auto& b) {
      return trees_.steps[a.front()].rank < trees_.steps[b.front()].rank;
    });
    std::vector<std::pair<double, std::vector<uint32_t>>> sets;
    for (auto& steps : processes) {
      std::vector<double> counts;
      for (const uint32_t s : steps) counts.push_back(static_cast<double>(profiles_[s].op_count));
      const double ops = ml::Quantile(counts, 0.5);
      auto same = std::find_if(sets.begin(), sets.end(), [&](const auto& set) {
        return std::abs(set.first - ops) <= 0.05 * std::max(set.first, ops) &&
               programs.Same(trees_.steps[set.second.front()].process, trees_.steps[steps.front()].process);
      });
      if (same == sets.end()) {
        sets.emplace_back(ops, std::move(steps));
      } else {
        same->second.insert(same->second.end(), steps.begin(), steps.end());
      }
    }
    std::vector<std::vector<uint32_t>> out;
    for (auto& set : sets) out.push_back(std::move(set.second));
    return out;
  }

  /// Touched by the profiler: it starts in the first step and stops recording operators somewhere in the last one.
  bool Unfit(uint32_t s) const { return trees_.steps[s].observer || cut_[s]; }

  void MarkCut(const std::vector<uint32_t>& set) {
    std::vector<double> counts;
    for (const uint32_t s : set) counts.push_back(static_cast<double>(profiles_[s].op_count));
    const double usual = ml::Quantile(counts, 0.3);
    for (const uint32_t s : set) {
      const bool last = s + 1 == trees_.steps.size() || trees_.steps[s + 1].process != trees_.steps[s].process;
      if (last && static_cast<double>(profiles_[s].op_count) < 0.7 * usual) cut_[s] = true;
    }
  }

  void FitSet(const std::vector<uint32_t>& set) {
    MarkCut(set);
    Predict(set);
    Index(set);
    for (const uint32_t s : set) {
      normals_[s].expected_gap = GapNormal(s);
      if (Unfit(s)) continue;
      const std::vector<uint32_t> peers = Peers(s, normals_[s].same_shape);
      normals_[s].peers = static_cast<uint32_t>(peers.size());
      if (peers.size() < kFewestPeers) continue;
      normals_[s].judged = true;
      Compare(s, peers);
    }
  }

  void Predict(const std::vector<uint32_t>& set) {
    bool work = true;
    bool tokens = true;
    bool requests = true;
    for (const uint32_t s : set) {
      work = work && trees_.steps[s].work >= 0;
      tokens = tokens && trees_.steps[s].new_tokens >= 0;
      requests = requests && trees_.steps[s].decode_requests >= 0;
    }
    std::vector<std::vector<double>> rows;
    std::vector<double> cost;
    for (const uint32_t s : set) {
      if (Unfit(s)) continue;
      rows.push_back(Features(trees_.steps[s], work, tokens, requests));
      cost.push_back(static_cast<double>(profiles_[s].own()));
    }
    if (rows.empty()) return;
    const bool shaped = !rows[0].empty();
    const ml::LinearFit fit = ml::FitRobust(rows, cost);
    const double median = ml::Quantile(cost, 0.5);
    for (const uint32_t s : set) {
      double p = median;
      if (fit.ok && shaped) p = fit.Predict(Features(trees_.steps[s], work, tokens, requests));
      normals_[s].predicted = static_cast<Nanos>(std::max(p, 0.05 * median));
    }
  }

  /// Steps of exactly this shape where there are enough of them, else those of similar predicted cost.
  std::vector<uint32_t> Peers(uint32_t s, bool& same_shape) const {
    std::vector<uint32_t> same = SameShape(s);
    same_shape = same.size() >= kFewestPeers;
    if (same_shape) return same;
    std::vector<uint32_t> near = SimilarCost(s, kSimilarCost);
    if (near.size() >= kFewestPeers) return near;
    return SimilarCost(s, kRoughlySimilar);
  }

  /// A set's steps by shape, and by (kind, predicted cost), so that peers are looked up and not searched for.
  void Index(const std::vector<uint32_t>& set) {
    by_shape_.clear();
    by_cost_.clear();
    for (const uint32_t s : set) {
      if (Unfit(s)) continue;
      const Step& step = trees_.steps[s];
      if (step.new_tokens >= 0 || step.work >= 0) by_shape_[ShapeKey(step)].push_back(s);
      by_cost_.emplace_back(step.kind, normals_[s].predicted, s);
    }
    std::sort(by_cost_.begin(), by_cost_.end());
    for (auto& [key, steps] : by_shape_) {
      // Without token counts the operators' sizes are the shape.
      std::stable_sort(steps.begin(), steps.end(),
                       [&](uint32_t a, uint32_t b) { return trees_.steps[a].work < trees_.steps[b].work; });
    }
  }

  static std::tuple<trace::StepKind, int64_t, int64_t> ShapeKey(const Step& step) {
    return {step.kind, step.new_tokens, step.decode_requests};
  }

  std::vector<uint32_t> SameShape(uint32_t s) const {
    const Step& mine = trees_.steps[s];
    const auto found = by_shape_.find(ShapeKey(mine));
    if (found == by_shape_.end()) return {};
    const auto& steps = found->second;
    if (mine.new_tokens >= 0) return EvenSample(steps, s);
    // A growing context changes sizes slowly: a tenth either way is the same shape.
    const auto less = [&](uint32_t a, double work) { return trees_.steps[a].work < work; };
    const auto low = std::lower_bound(steps.begin(), steps.end(), 0.9 * mine.work, less);
    const auto high = std::lower_bound(low, steps.end(), 1.1 * mine.work, less);
    return EvenSample({low, high}, s);
  }

  bool IsSameShape(uint32_t s, uint32_t other) const {
    const Step& mine = trees_.steps[s];
    const Step& theirs = trees_.steps[other];
    if (ShapeKey(mine) != ShapeKey(theirs)) return false;
    return mine.new_tokens >= 0 || std::abs(theirs.work - mine.work) <= 0.1 * mine.work;
  }

  /// At most kMostPeers of them but `s`, spread over time, so that a long fault is not its own normal.
  static std::vector<uint32_t> EvenSample(std::span<const uint32_t> pool, uint32_t s) {
    std::vector<uint32_t> even;
    const size_t want = std::min(pool.size(), kMostPeers + 1);
    for (size_t k = 0; k < want; ++k) {
      const uint32_t other = pool[k * pool.size() / want];
      if (other != s && even.size() < kMostPeers) even.push_back(other);
    }
    std::sort(even.begin(), even.end());
    return even;
  }

  std::vector<uint32_t> SimilarCost(uint32_t s, double most) const {
    const auto mine = static_cast<double>(normals_[s].predicted);
    const trace::StepKind kind = trees_.steps[s].kind;
    const auto low = std::lower_bound(by_cost_.begin(), by_cost_.end(),
                                      std::tuple(kind, static_cast<Nanos>(mine * (1 - most)), uint32_t{0}));
    const auto high =
        std::upper_bound(low, by_cost_.end(), std::tuple(kind, static_cast<Nanos>(mine * (1 + most)), kNoSpan));
    std::vector<uint32_t> near;
    for (auto it = low; it != high; ++it) near.push_back(std::get<2>(*it));
    return EvenSample(near, s);
  }

  void Compare(uint32_t s, const std::vector<uint32_t>& peers) {
    const StepProfile& profile = profiles_[s];
    StepNormal& normal = normals_[s];
    normal.expected.assign(profile.slots.size(), 0);
    normal.expected_total.assign(profile.slots.size(), 0);
    std::vector<double> values(peers.size());
    std::vector<size_t> cursor(peers.size(), 0);
    // Peers of a somewhat different size count as if they had this one's.
    std::vector<double> scale(peers.size(), 1.0);
    for (size_t p = 0; p < peers.size(); ++p) {
      if (IsSameShape(s, peers[p]) || normals_[peers[p]].predicted <= 0) continue;
      scale[p] = std::clamp(static_cast<double>(normal.predicted) / static_cast<double>(normals_[peers[p]].predicted),
                            0.5, 2.0);
    }
    for (size_t k = 0; k < profile.slots.size(); ++k) {
      const SlotKey& key = profile.slots[k].key;
      for (size_t p = 0; p < peers.size(); ++p) {
        const auto& slots = profiles_[peers[p]].slots;
        while (cursor[p] < slots.size() && slots[cursor[p]].key < key) ++cursor[p];
        const bool has = cursor[p] < slots.size() && slots[cursor[p]].key == key;
        values[p] = has ? scale[p] * static_cast<double>(slots[cursor[p]].cost) : 0.0;
      }
      normal.expected[k] = static_cast<Nanos>(ml::LowMode(values, kApart, kNormalWeight));
      if (key.kind == SlotKey::Kind::kOp) {
        for (size_t p = 0; p < peers.size(); ++p) {
          const auto& slots = profiles_[peers[p]].slots;
          const bool has = cursor[p] < slots.size() && slots[cursor[p]].key == key;
          values[p] = has ? scale[p] * static_cast<double>(slots[cursor[p]].total) : 0.0;
        }
        normal.expected_total[k] = static_cast<Nanos>(ml::LowMode(values, kApart, kNormalWeight));
      } else {
        normal.expected_total[k] = normal.expected[k];
      }
      if (key.kind == SlotKey::Kind::kOp || key.kind == SlotKey::Kind::kHost) normal.expected_own += normal.expected[k];
      if (profile.slots[k].waits) normal.expected_beside += normal.expected[k];
    }
    const auto part = [&](auto get) {
      for (size_t p = 0; p < peers.size(); ++p) values[p] = static_cast<double>(get(profiles_[peers[p]]));
      return static_cast<Nanos>(ml::LowMode(values, kApart, kNormalWeight));
    };
    normal.expected_transfer = part([](const StepProfile& x) { return x.comm_transfer; });
    normal.expected_wait = part([](const StepProfile& x) { return x.comm_wait; });
  }

  /// Sequences that the work before a step is for: those of the step that ended and those of the one to come.
  int64_t BatchAt(uint32_t s) const {
    const auto batch = [&](uint32_t i) {
      const Step& step = trees_.steps[i];
      return std::clamp<int64_t>(step.decode_requests, 0, kMostBatch) +
             std::clamp<int64_t>(step.prefill_requests, 0, kMostBatch);
    };
    const bool first = s == 0 || trees_.steps[s - 1].process != trees_.steps[s].process;
    return std::max<int64_t>(1, std::max(batch(s), first ? 0 : batch(s - 1)));
  }

  /// Low end of some gaps: nothing makes a gap shorter than the engine's own work, so that is normal even if most are
  /// long.
  static Nanos LowEnd(std::vector<Nanos>& gaps) {
    if (gaps.empty()) return 0;
    std::sort(gaps.begin(), gaps.end());
    return gaps[(gaps.size() - 1) / 10];
  }

  /// What a process needs between two steps. It does not depend on the tokens, but it may grow with the sequences that
  /// it has to look after: gaps at about this batch tell, but a scheduler that is slow whenever much runs is slow.
  Nanos GapNormal(uint32_t s) {
    const uint32_t process = trees_.steps[s].process.value();
    const auto [it, fresh] = gaps_.try_emplace(process);
    GapNormals& known = it->second;
    if (fresh) {
      std::vector<Nanos> all;
      for (uint32_t i = 0; i < profiles_.size(); ++i) {
        if (trees_.steps[i].process.value() != process || profiles_[i].gap <= 0) continue;
        all.push_back(profiles_[i].gap);
        known.by_batch[SizeOf(BatchAt(i))].push_back(profiles_[i].gap);
      }
      known.all = LowEnd(all);
      for (auto& [size, gaps] : known.by_batch) {
        const Nanos low = gaps.size() < kFewestGaps ? known.all : LowEnd(gaps);
        gaps = {std::clamp(low, known.all, std::max(known.all, std::min(known.all, kLongestGap) * kMostGapGrowth))};
      }
    }
    const auto found = known.by_batch.find(SizeOf(BatchAt(s)));
    return found == known.by_batch.end() ? known.all : found->second.front();
  }

  /// Batches within a factor of two are of one size.
  static int SizeOf(int64_t batch) { return static_cast<int>(std::log2(static_cast<double>(batch))); }

  struct GapNormals {
    Nanos all = 0;
    std::map<int, std::vector<Nanos>> by_batch;  ///< size -> its normal gap, one value
  };

  const trace::Trees& trees_;
  const std::vector<StepProfile>& profiles_;
  std::vector<StepNormal> normals_;
  std::vector<bool> cut_;
  std::map<std::tuple<trace::StepKind, int64_t, int64_t>, std::vector<uint32_t>> by_shape_;
  std::vector<std::tuple<trace::StepKind, Nanos, uint32_t>> by_cost_;
  std::map<uint32_t, GapNormals> gaps_;  ///< by process
};

}  // namespace

std::vector<StepNormal> FitNormals(const trace::Trees& trees, const std::vector<StepProfile>& profiles) {
  return Fitter(trees, profiles).Run();
}

}  // namespace teller::locate
