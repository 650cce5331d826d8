#include "tree/graph_align.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

namespace teller::tree {

namespace {

using Score = int32_t;
constexpr Score kNever = std::numeric_limits<Score>::min() / 4;
constexpr Score kOpen = 3;    // first element of a gap
constexpr Score kExtend = 1;  // each further one
constexpr Score kClearMargin = 1 << 20;

Score PairScore(const GraphToken& a, const GraphToken& b) {
  switch (Compare(a, b)) {
    case Agreement::kExact: return 6;
    case Agreement::kFamily: return 5;
    case Agreement::kStem: return 3;
    case Agreement::kClass: return 2;
    case Agreement::kNone: break;
  }
  if (a.kind != b.kind) return -8;  // worse than two gaps
  if (a.name == 0 || b.name == 0) return a.work == KernelClass::kUnknown || b.work == KernelClass::kUnknown ? 1 : -3;
  return -4;  // better than two gaps: one kernel in the place of another
}

/// Columns of a row that are computed: all, or a band around a diagonal.
class Band {
 public:
  Band(size_t rows, size_t columns, size_t max_cells, int64_t diagonal)
      : columns_(columns),
        diagonal_(diagonal),
        slope_(rows == 0 ? 1.0 : static_cast<double>(columns) / static_cast<double>(rows)) {
    whole_ = columns + 1 <= max_cells / (rows + 1);
    half_ = std::max<size_t>(16, max_cells / (rows + 1) / 2);
  }
  bool whole() const { return whole_; }
  size_t width() const { return whole_ ? columns_ + 1 : 2 * half_ + 1; }
  /// Columns [Lo, Hi) of row `i`, counted from 0 (before the first element).
  size_t Lo(size_t i) const {
    return whole_ ? 0 : static_cast<size_t>(std::max<int64_t>(0, Centre(i) - static_cast<int64_t>(half_)));
  }
  size_t Hi(size_t i) const {
    if (whole_) return columns_ + 1;
    return static_cast<size_t>(
        std::clamp<int64_t>(Centre(i) + static_cast<int64_t>(half_) + 1, 0, static_cast<int64_t>(columns_) + 1));
  }

 private:
  /// The band follows the diagonal on which most short runs agree; without one, from corner to corner.
  int64_t Centre(size_t i) const {
    const int64_t at = diagonal_ == kNoDiagonal ? static_cast<int64_t>(static_cast<double>(i) * slope_)
                                                : static_cast<int64_t>(i) + diagonal_;
    return std::clamp<int64_t>(at, 0, static_cast<int64_t>(columns_));
  }

 public:
  static constexpr int64_t kNoDiagonal = std::numeric_limits<int64_t>::min();

 private:
  size_t columns_;
  int64_t diagonal_;
  double slope_;
  bool whole_ = true;
  size_t half_ = 0;
};

/// The diagonal (column minus row) on which most runs of four elements agree. Runs that stand in many places say
/// nothing.
int64_t CommonDiagonal(const std::vector<GraphToken>& a, const std::vector<GraphToken>& b) {
  constexpr size_t kRun = 4;
  constexpr size_t kMostPlaces = 64;
  const auto key = [](const std::vector<GraphToken>& tokens, size_t at) {
    uint64_t hash = 0;
    for (size_t i = at; i < at + kRun; ++i) hash = (hash ^ tokens[i].family) * 0x9E3779B97F4A7C15ULL;
    return hash;
  };
  std::unordered_map<uint64_t, std::vector<uint32_t>> places;
  for (size_t j = 0; j + kRun <= b.size(); ++j) {
    auto& list = places[key(b, j)];
    if (list.size() < kMostPlaces) list.push_back(static_cast<uint32_t>(j));
  }
  std::unordered_map<int64_t, uint32_t> votes;
  std::pair<uint32_t, int64_t> best{0, Band::kNoDiagonal};
  for (size_t i = 0; i + kRun <= a.size(); ++i) {
    const auto found = places.find(key(a, i));
    if (found == places.end() || found->second.size() >= kMostPlaces) continue;
    for (const uint32_t j : found->second) {
      const int64_t diagonal = static_cast<int64_t>(j) - static_cast<int64_t>(i);
      best = std::max(best, {++votes[diagonal / 16 * 16], diagonal / 16 * 16});
    }
  }
  return best.second;
}

void CountAgreeing(Alignment& out) {
  for (size_t p = 0; p < out.pairs.size(); ++p) {
    if (out.pairs[p].agreement == Agreement::kNone) continue;
    ++out.agreeing;
    if (p == 0) continue;
    const AlignedPair& before = out.pairs[p - 1];
    out.runs += before.agreement != Agreement::kNone && before.replay + 1 == out.pairs[p].replay &&
                before.reference + 1 == out.pairs[p].reference;
  }
}

/// The three states of an alignment's end: a pair, a gap in the reference (replay runs on), a gap in the replay.
enum State : uint8_t { kPair = 0, kReplayOnly = 1, kReferenceOnly = 2 };

class Aligner {
 public:
  Aligner(const std::vector<GraphToken>& replay, const std::vector<GraphToken>& reference, const AlignOptions& options)
      : a_(replay),
        b_(reference),
        open_ends_(options.open_ends),
        band_(a_.size(), b_.size(), options.max_cells,
              !open_ends_ || b_.size() + 1 <= options.max_cells / (a_.size() + 1) ? Band::kNoDiagonal
                                                                                  : CommonDiagonal(a_, b_)),
        width_(band_.width()) {}

  Alignment Run() {
    Alignment out;
    out.banded = !band_.whole();
    if (a_.empty() || b_.empty()) return out;
    Forward();
    if (best_ <= kNever / 2) return out;
    out.score = best_;
    Trace(out);
    Margins(out);
    CountAgreeing(out);
    return out;
  }

 private:
  struct Cell {
    std::array<Score, 3> at = {kNever, kNever, kNever};
    Score Best() const { return std::max({at[kPair], at[kReplayOnly], at[kReferenceOnly]}); }
  };
  using Row = std::vector<Cell>;

  size_t n() const { return a_.size(); }
  size_t m() const { return b_.size(); }
  size_t Slot(size_t i, size_t j) const { return i * width_ + (j - band_.Lo(i)); }
  bool In(size_t i, size_t j) const { return j >= band_.Lo(i) && j < band_.Hi(i); }
  const Cell& At(const Row& row, size_t i, size_t j) const {
    static const Cell kOutside;
    return In(i, j) ? row[j - band_.Lo(i)] : kOutside;
  }
  /// The cheapest way into a gap state, and the state it comes from.
  static std::pair<Score, State> IntoGap(const Cell& from, State gap) {
    std::pair<Score, State> best{from.at[gap] - kExtend, gap};
    for (const State other : {kPair, kReplayOnly, kReferenceOnly}) {
      if (other != gap && from.at[other] - kOpen > best.first) best = {from.at[other] - kOpen, other};
    }
    return best;
  }

  void Forward() {
    pair_score_.assign((n() + 1) * width_, kNever);
    from_.assign((n() + 1) * width_, 0);
    Row above, row;
    for (size_t i = 0; i <= n(); ++i) {
      row.assign(width_, {});
      for (size_t j = band_.Lo(i); j < band_.Hi(i); ++j) {
        Cell& cell = row[j - band_.Lo(i)];
        if (i == 0 && (j == 0 || open_ends_)) cell.at[kPair] = 0;
        uint8_t from = 0;
        if (i > 0 && j > 0) {
          const Cell& diagonal = At(above, i - 1, j - 1);
          const State state = BestState(diagonal);
          cell.at[kPair] = std::max(kNever, diagonal.at[state] + PairScore(a_[i - 1], b_[j - 1]));
          from = state;
        }
        if (i > 0) {
          const auto [score, state] = IntoGap(At(above, i - 1, j), kReplayOnly);
          cell.at[kReplayOnly] = std::max(kNever, score);
          from = static_cast<uint8_t>(from | state << 2);
        }
        if (j > 0 && !(i == 0 && open_ends_)) {
          const auto [score, state] = IntoGap(At(row, i, j - 1), kReferenceOnly);
          cell.at[kReferenceOnly] = std::max(kNever, score);
          from = static_cast<uint8_t>(from | state << 4);
        }
        pair_score_[Slot(i, j)] = cell.at[kPair];
        from_[Slot(i, j)] = from;
      }
      above.swap(row);
    }
    for (size_t j = open_ends_ ? band_.Lo(n()) : m(); j < band_.Hi(n()); ++j) {
      const Cell& last = At(above, n(), j);
      if (last.Best() <= best_) continue;
      best_ = last.Best();
      end_ = j;
      end_state_ = BestState(last);
    }
  }
  /// Ties go to the pair: an alignment without needless gaps.
  static State BestState(const Cell& cell) {
    State best = kPair;
    for (const State state : {kReplayOnly, kReferenceOnly}) {
      if (cell.at[state] > cell.at[best]) best = state;
    }
    return best;
  }

  void Trace(Alignment& out) const {
    size_t i = n();
    size_t j = end_;
    State state = end_state_;
    while (i > 0 || (j > 0 && !open_ends_)) {
      const uint8_t from = from_[Slot(i, j)];
      if (state == kPair) {
        out.pairs.push_back({.replay = static_cast<uint32_t>(i - 1),
                             .reference = static_cast<uint32_t>(j - 1),
                             .agreement = Compare(a_[i - 1], b_[j - 1]),
                             .margin = kClearMargin,
                             .rival = static_cast<uint32_t>(j - 1)});
        state = static_cast<State>(from & 3);
        --i;
        --j;
      } else if (state == kReplayOnly) {
        state = static_cast<State>(from >> 2 & 3);
        --i;
      } else {
        state = static_cast<State>(from >> 4 & 3);
        --j;
      }
    }
    std::reverse(out.pairs.begin(), out.pairs.end());
  }

  /// Backward scores: row i holds the best score of aligning what follows element i, by the state before it. With the
  /// forward scores, the best alignment through each pair; of those to other places, the best is the rival.
  void Margins(Alignment& out) const {
    Row below, row;
    auto pair = out.pairs.rbegin();
    for (size_t i = n() + 1; i-- > 0;) {
      row.assign(width_, {});
      for (size_t j = band_.Hi(i); j-- > band_.Lo(i);) {
        Cell& cell = row[j - band_.Lo(i)];
        if (i == n() && (j == m() || open_ends_)) {  // with open ends the rest of the reference costs nothing
          cell.at = {0, 0, 0};
          continue;
        }
        Score by_pair = kNever;
        if (i < n() && j < m()) by_pair = At(below, i + 1, j + 1).at[kPair] + PairScore(a_[i], b_[j]);
        const Score by_replay = i < n() ? At(below, i + 1, j).at[kReplayOnly] : kNever;
        const Score by_reference = j < m() ? At(row, i, j + 1).at[kReferenceOnly] : kNever;
        cell.at[kPair] = std::max({kNever, by_pair, by_replay - kOpen, by_reference - kOpen});
        cell.at[kReplayOnly] = std::max({kNever, by_pair, by_replay - kExtend, by_reference - kOpen});
        cell.at[kReferenceOnly] = std::max({kNever, by_pair, by_replay - kOpen, by_reference - kExtend});
      }
      if (pair != out.pairs.rend() && pair->replay + 1 == i) SetRival(row, i, *pair++);
      below.swap(row);
    }
  }

  void SetRival(const Row& row, size_t i, AlignedPair& pair) const {
    const uint32_t place = b_[pair.reference].place;
    Score rival = kNever;
    for (size_t j = std::max<size_t>(1, band_.Lo(i)); j < band_.Hi(i); ++j) {
      if (b_[j - 1].place == place || j - 1 == pair.reference) continue;
      const Score through = pair_score_[Slot(i, j)] + row[j - band_.Lo(i)].at[kPair];
      if (through <= rival) continue;
      rival = through;
      pair.rival = static_cast<uint32_t>(j - 1);
    }
    if (rival > kNever / 2) pair.margin = std::clamp(best_ - rival, 0, kClearMargin);
  }

  const std::vector<GraphToken>& a_;
  const std::vector<GraphToken>& b_;
  const bool open_ends_;
  const Band band_;
  const size_t width_;
  std::vector<Score> pair_score_;  // best alignment of the first i and j elements that ends in their pair
  std::vector<uint8_t> from_;      // for each state the state before it, two bits each
  Score best_ = kNever;
  size_t end_ = 0;  // column in which the alignment ends
  State end_state_ = kPair;
};

}  // namespace

Agreement Compare(const GraphToken& a, const GraphToken& b) {
  if (a.kind != b.kind) return Agreement::kNone;
  if (a.name == 0 || b.name == 0) {
    if (a.kind != trace::SpanKind::kKernel) return Agreement::kClass;
    return a.work != KernelClass::kUnknown && a.work == b.work ? Agreement::kClass : Agreement::kNone;
  }
  if (a.name == b.name) return Agreement::kExact;
  if (a.family == b.family) return Agreement::kFamily;
  if (a.work != b.work) return Agreement::kNone;
  if (a.stem == b.stem) return Agreement::kStem;
  return a.work != KernelClass::kUnknown ? Agreement::kClass : Agreement::kNone;
}

Alignment PairInOrder(const std::vector<GraphToken>& replay, const std::vector<GraphToken>& reference) {
  Alignment out;
  const auto n = static_cast<uint32_t>(std::min(replay.size(), reference.size()));
  for (uint32_t i = 0; i < n; ++i) {
    out.pairs.push_back({.replay = i,
                         .reference = i,
                         .agreement = Compare(replay[i], reference[i]),
                         .margin = kClearMargin,
                         .rival = i});
    out.score += PairScore(replay[i], reference[i]);
  }
  CountAgreeing(out);
  return out;
}

Alignment Align(const std::vector<GraphToken>& replay, const std::vector<GraphToken>& reference,
                const AlignOptions& options) {
  const bool same = replay.size() == reference.size() && std::equal(replay.begin(), replay.end(), reference.begin(),
                                                                    [](const GraphToken& a, const GraphToken& b) {
                                                                      return Compare(a, b) == Agreement::kExact;
                                                                    });
  // Equal sequences need no table: any other place of an element costs two gaps and the pairs between.
  if (same && !replay.empty()) return PairInOrder(replay, reference);
  return Aligner(replay, reference, options).Run();
}

}  // namespace teller::tree
