#include "tree/graph_match.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <tuple>

namespace teller::tree {

namespace {

using trace::GraphSource;
using trace::SpanKind;
using trace::StringId;

constexpr size_t kTried = 4;            // references that are aligned, of those that have the same kernels
constexpr double kLeastAgreeing = 0.6;  // of the elements, to be taken for the same program
constexpr double kLeastRuns = 0.6;  // of the agreeing ones, that follow each other on both sides: chance makes no runs
constexpr double kLeastCovered = 0.9;  // of a capture that names no kernels, which order and number alone must prove
constexpr double kLeastConsistent = 0.85;  // of its places, that always get the same kernel
constexpr double kMostConflicts =
    0.2;  // of its pairs whose classes are known, that differ: words in names mislead at times
constexpr size_t kFewestTokens = 4;      // shorter replays are taken only when they are equal
constexpr uint32_t kBlock = 4;           // neighbours without a partner that are more than an autotuner's choice
constexpr float kAmbiguous = 0.35F;      // of the confidence, where another place fits as well
constexpr float kElsewhere = 0.9F;       // of the confidence, when the reference is another rank's or an earlier run's
constexpr float kFromNeighbours = 0.5F;  // an element that only its neighbours place

float Trust(Agreement agreement) {
  switch (agreement) {
    case Agreement::kExact: return 0.98F;
    case Agreement::kFamily: return 0.93F;
    case Agreement::kStem: return 0.85F;
    case Agreement::kClass: return 0.7F;
    case Agreement::kNone: break;
  }
  return 0.55F;
}

std::vector<uint32_t> SortedFamilies(const std::vector<GraphToken>& tokens) {
  std::vector<uint32_t> out;
  for (const GraphToken& token : tokens) out.push_back(token.family);
  std::sort(out.begin(), out.end());
  return out;
}

/// How many families both have, counted as often as both have them.
size_t Shared(const std::vector<uint32_t>& fa, const std::vector<uint32_t>& fb) {
  size_t shared = 0;
  for (size_t i = 0, j = 0; i < fa.size() && j < fb.size();) {
    if (fa[i] == fb[j]) {
      ++shared, ++i, ++j;
    } else if (fa[i] < fb[j]) {
      ++i;
    } else {
      ++j;
    }
  }
  return shared;
}

/// A graph serves batches up to its own size, so a larger capture is nearer than a smaller one.
int64_t BatchDistance(int64_t replay, int64_t captured) {
  if (replay < 0 || captured < 0) return INT32_MAX;
  return captured >= replay ? captured - replay : 4 * (replay - captured);
}

bool SameNames(const std::vector<GraphToken>& a, const std::vector<GraphToken>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const GraphToken& x, const GraphToken& y) {
           return x.kind == y.kind && x.name == y.name && x.family == y.family && x.work == y.work;
         });
}

/// Where a reference names no kernels: how far the same place (operator, class of module) always has the same kernel. A
/// sequence that slid by one would mix them up. 0 when nothing repeats, as then nothing is proved.
double Consistency(const std::vector<GraphToken>& replay, const GraphReference& reference, const Alignment& alignment) {
  size_t told = 0;
  size_t conflicts = 0;
  for (const AlignedPair& pair : alignment.pairs) {
    const GraphToken& a = replay[pair.replay];
    const GraphToken& b = reference.tokens[pair.reference];
    if (a.kind != b.kind) return 0;
    if (a.work == KernelClass::kUnknown || b.work == KernelClass::kUnknown) continue;
    ++told;
    conflicts += a.work != b.work;
  }
  if (static_cast<double>(conflicts) > kMostConflicts * static_cast<double>(told)) return 0;
  std::map<std::pair<uint32_t, KernelClass>, std::map<uint32_t, uint32_t>> kernels;  // place -> family -> count
  for (const AlignedPair& pair : alignment.pairs) {
    const uint32_t op = reference.places[pair.reference].op.value();
    ++kernels[{op, reference.tokens[pair.reference].work}][replay[pair.replay].family];
  }
  if (kernels.size() * 2 > alignment.pairs.size()) return 0;
  double usual = 0;
  for (const auto& [place, families] : kernels) {
    // A place may launch several kernels, each as often: what is rare against the most frequent is out of place.
    uint32_t most = 0;
    for (const auto& [family, count] : families) most = std::max(most, count);
    for (const auto& [family, count] : families) usual += 4 * count >= most ? count : 0;
  }
  return usual / static_cast<double>(std::max<size_t>(1, alignment.pairs.size()));
}

/// True when a block of the replay, or of a whole reference, has no partner: a layer more or less, as another model
/// has.
bool LacksBlock(const GraphReplayed& replay, const GraphReference& reference, const Alignment& alignment) {
  if (alignment.pairs.empty()) return true;
  std::vector<bool> placed(replay.tokens.size(), false);
  std::vector<bool> taken(reference.tokens.size(), false);
  for (const AlignedPair& pair : alignment.pairs) placed[pair.replay] = taken[pair.reference] = true;
  const auto has_run = [](const std::vector<bool>& used, size_t first, size_t last) {
    uint32_t run = 0;
    for (size_t i = first; i < last; ++i) {
      run = used[i] ? 0 : run + 1;
      if (run >= kBlock) return true;
    }
    return false;
  };
  const auto [first, last] =
      std::minmax_element(alignment.pairs.begin(), alignment.pairs.end(),
                          [](const AlignedPair& a, const AlignedPair& b) { return a.reference < b.reference; });
  return has_run(placed, 0, placed.size()) ||
         has_run(taken, reference.whole ? 0 : first->reference, reference.whole ? taken.size() : last->reference);
}

}  // namespace

struct GraphMatcher::Candidate {
  size_t reference;
  int64_t unlike;  // percent, in steps of five: small differences must not outweigh what follows
  int distance;
  bool eager;
  int64_t batch;
  auto key() const { return std::tuple(unlike, distance, eager, batch, reference); }
};

struct GraphMatcher::Fit {
  size_t reference = 0;
  Alignment alignment;
  double agreeing = 0;
  double consistency = 1;
  int distance = 0;
};

GraphMatcher::GraphMatcher(trace::Store& store, const std::vector<GraphReference>& references)
    : store_(store), references_(references) {
  for (const GraphReference& reference : references) families_.push_back(SortedFamilies(reference.tokens));
}

/// 0 = the same process, 1 = the same rank or one of them has none, 2 = another rank, 3 = an earlier run.
int GraphMatcher::Distance(trace::ProcessRow replay, const GraphReference& reference) const {
  if (reference.learned.valid()) return 3;
  if (replay == reference.process) return 0;
  const auto& a = store_.processes[replay.value()].rank;
  const auto& b = store_.processes[reference.process.value()].rank;
  return a && b && *a != *b ? 2 : 1;
}

std::vector<GraphMatcher::Candidate> GraphMatcher::Candidates(const GraphReplayed& replay, bool joined) const {
  std::vector<Candidate> out;
  const std::vector<uint32_t> families = SortedFamilies(replay.tokens);
  for (size_t r = 0; r < references_.size(); ++r) {
    const GraphReference& reference = references_[r];
    if (reference.joined != joined) continue;
    const size_t longer = std::max(replay.tokens.size(), reference.whole ? reference.tokens.size() : size_t{0});
    const size_t shared = reference.names_kernels ? Shared(families, families_[r])
                                                  : std::min(replay.tokens.size(), reference.tokens.size());
    const auto alike = static_cast<int64_t>(shared * 20 / std::max<size_t>(1, longer));
    if (alike < 4) continue;  // families differ where batches do, but not nearly all of them
    out.push_back({.reference = r,
                   .unlike = 20 - alike,
                   .distance = Distance(replay.process, reference),
                   .eager = !reference.whole,
                   .batch = BatchDistance(replay.batch, reference.batch)});
  }
  std::sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) { return a.key() < b.key(); });
  if (out.size() > kTried) out.resize(kTried);
  return out;
}

/// Kernels of parallel branches interleave differently each time: when there are several streams, the one with most
/// work is aligned first and the others to what it left.
Alignment GraphMatcher::AlignTo(const GraphReplayed& replay, const GraphReference& reference) {
  const AlignOptions options{.open_ends = !reference.whole};
  const auto align = [&](const std::vector<GraphToken>& a, const std::vector<GraphToken>& b, bool open_ends) {
    AlignOptions how = options;
    how.open_ends = open_ends;
    cells_ += std::min<uint64_t>(how.max_cells, (a.size() + 1) * uint64_t{b.size() + 1});
    return Align(a, b, how);
  };
  if (!reference.names_kernels && replay.tokens.size() == reference.tokens.size())
    return PairInOrder(replay.tokens, reference.tokens);
  Alignment whole = align(replay.tokens, reference.tokens, options.open_ends);
  std::map<uint32_t, std::vector<uint32_t>> by_stream;
  for (uint32_t i = 0; i < replay.streams.size(); ++i) by_stream[replay.streams[i]].push_back(i);
  if (by_stream.size() < 2 || whole.agreeing == replay.tokens.size()) return whole;
  std::vector<std::vector<uint32_t>> streams;
  for (auto& [stream, elements] : by_stream) streams.push_back(std::move(elements));
  std::stable_sort(streams.begin(), streams.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<uint32_t> left(reference.tokens.size());
  std::iota(left.begin(), left.end(), 0u);
  Alignment split;
  for (const auto& elements : streams) {
    std::vector<GraphToken> a, b;
    for (const uint32_t i : elements) a.push_back(replay.tokens[i]);
    for (const uint32_t j : left) b.push_back(reference.tokens[j]);
    Alignment part = align(a, b, true);
    std::vector<bool> used(left.size(), false);
    for (AlignedPair& pair : part.pairs) {
      used[pair.reference] = true;
      pair.replay = elements[pair.replay];
      pair.reference = left[pair.reference];
      pair.rival = left[pair.rival];
      split.pairs.push_back(pair);
    }
    split.agreeing += part.agreeing;
    split.runs += part.runs;
    split.score += part.score;
    std::vector<uint32_t> rest;
    for (size_t j = 0; j < left.size(); ++j) {
      if (!used[j]) rest.push_back(left[j]);
    }
    left = std::move(rest);
  }
  if (split.agreeing <= whole.agreeing) return whole;
  std::sort(split.pairs.begin(), split.pairs.end(),
            [](const AlignedPair& a, const AlignedPair& b) { return a.replay < b.replay; });
  return split;
}

std::optional<Attribution> GraphMatcher::Match(const GraphReplayed& replay, bool joined) {
  std::optional<Fit> best;
  for (const Candidate& candidate : Candidates(replay, joined)) {
    if (cells_ > kMaxTableCells) {
      ++given_up_;
      break;
    }
    const GraphReference& reference = references_[candidate.reference];
    Fit fit{.reference = candidate.reference, .alignment = AlignTo(replay, reference), .distance = candidate.distance};
    const double n = static_cast<double>(replay.tokens.size());
    const double placed =
        static_cast<double>(reference.names_kernels ? fit.alignment.agreeing : fit.alignment.pairs.size());
    fit.agreeing = placed / n;
    const bool equal =
        fit.alignment.agreeing == replay.tokens.size() && replay.tokens.size() == reference.tokens.size();
    if (replay.tokens.size() < kFewestTokens && !(equal && reference.names_kernels && reference.whole)) continue;
    if (fit.agreeing < kLeastAgreeing) continue;
    if (reference.names_kernels) {
      if (!equal && static_cast<double>(fit.alignment.runs) < kLeastRuns * placed) continue;
      if (reference.whole && placed < kLeastAgreeing * static_cast<double>(reference.tokens.size())) continue;
    } else {
      if (placed < kLeastCovered * std::max(n, static_cast<double>(reference.tokens.size()))) continue;
      fit.consistency = Consistency(replay.tokens, reference, fit.alignment);
      if (fit.consistency < kLeastConsistent) continue;
    }
    // Candidates come in order of preference: a later one must be clearly better.
    if (!best || fit.agreeing * fit.consistency > best->agreeing * best->consistency + 0.02) best = std::move(fit);
    if (equal && reference.names_kernels) break;
  }
  if (!best) return std::nullopt;
  const GraphReference& chosen = references_[best->reference];
  // Sequences of other models, learned earlier, that have the same kernels: which model replays here, nobody can know.
  const auto is_twin = [&](const GraphReference& other) {
    if (other.joined != joined || other.learned.valid() != chosen.learned.valid()) return false;
    if (!chosen.learned.valid() && (other.process != chosen.process || other.batch != chosen.batch)) return false;
    return SameNames(other.tokens, chosen.tokens);
  };
  std::vector<size_t> twins;
  for (size_t r = 0; r < references_.size(); ++r) {
    if (r != best->reference && is_twin(references_[r])) twins.push_back(r);
  }
  return Judge(replay, *best, twins);
}

StringId GraphMatcher::Common(StringId a, StringId b) {
  if (a == b) return a;
  const std::string common = CommonModule(store_.text(a), store_.text(b));
  return common.empty() ? StringId() : store_.strings.Intern(common);
}

Attribution GraphMatcher::Judge(const GraphReplayed& replay, const Fit& fit, const std::vector<size_t>& twins) {
  const GraphReference& reference = references_[fit.reference];
  // A sequence of another run may be another model's: one that fits but for a block is no proof of the layer.
  const bool doubtful = reference.learned.valid() && LacksBlock(replay, reference, fit.alignment);
  const float quality = (doubtful ? kAmbiguous : 1.0F) *
                        static_cast<float>((0.5 + 0.5 * fit.agreeing) * fit.consistency) *
                        (fit.distance >= 2 ? kElsewhere : 1.0F);
  Attribution out(replay.tokens.size());
  std::vector<const AlignedPair*> pair_of(replay.tokens.size(), nullptr);
  for (const AlignedPair& pair : fit.alignment.pairs) {
    pair_of[pair.replay] = &pair;
    const GraphPlace& place = reference.places[pair.reference];
    trace::GraphOrigin& origin = out[pair.replay];
    origin = {.origin = place.launch,
              .module = place.module,
              .op = place.op,
              .source = reference.source,
              .learned = reference.learned};
    origin.confidence = Trust(pair.agreement) * quality;
    StringId module = place.module;
    if (pair.margin < kSafeMargin) {
      const GraphPlace& rival = reference.places[pair.rival];
      module = Common(module, rival.module);
      if (rival.op != place.op) origin.op = {};
      if (module == place.module && module.valid()) origin.confidence *= 0.8F;  // only the operator is open
    }
    for (const size_t twin : twins) module = Common(module, references_[twin].places[pair.reference].module);
    if (module != place.module) {
      origin.module = module;
      origin.confidence *= kAmbiguous;
    }
  }
  // What has no partner, or another kernel as one, is placed by what stands on both sides of it.
  for (size_t i = 0; i < out.size(); ++i) {
    const bool agrees =
        pair_of[i] != nullptr && (pair_of[i]->agreement != Agreement::kNone || !reference.names_kernels);
    if (agrees) continue;
    const auto solid = [&](size_t at) {
      return at < out.size() && pair_of[at] != nullptr && pair_of[at]->agreement != Agreement::kNone &&
             pair_of[at]->margin >= kSafeMargin;
    };
    if (pair_of[i] != nullptr && solid(i - 1) && solid(i + 1) && pair_of[i]->margin >= kSafeMargin &&
        pair_of[i - 1]->reference + 1 == pair_of[i]->reference &&
        pair_of[i]->reference + 1 == pair_of[i + 1]->reference) {
      continue;  // one kernel took the place of another
    }
    size_t before = i;
    while (before > 0 && i - before < 8 && !solid(before - 1)) --before;
    size_t after = i + 1;
    while (after < out.size() && after - i < 8 && !solid(after)) ++after;
    out[i] = {};
    if (before == 0 || !solid(before - 1) || !solid(after)) continue;
    const StringId module = Common(reference.places[pair_of[before - 1]->reference].module,
                                   reference.places[pair_of[after]->reference].module);
    if (!module.valid() || module.value() == 0) continue;
    out[i] = {.module = module,
              .confidence = kFromNeighbours * quality,
              .source = reference.source,
              .learned = reference.learned};
  }
  for (trace::GraphOrigin& origin : out) {
    if (!origin.module.valid() && !origin.op.valid()) origin = {};
  }
  return out;
}

}  // namespace teller::tree
