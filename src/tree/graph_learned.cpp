#include <algorithm>
#include <map>
#include <tuple>

#include "tree/graph_sequence.hpp"

namespace teller::tree {

namespace {

using trace::GraphSource;
using trace::LearnedLaunch;
using trace::LearnedSequence;
using trace::StringId;

/// Keeps different sequences within the bounds.
class Learner {
 public:
  explicit Learner(trace::Store& store) : store_(store) {}

  void Add(const GraphReference& reference) {
    LearnedSequence sequence{.model = ModelOf({false, reference.process.value()}),
                             .source = reference.source,
                             .whole = reference.whole,
                             .joined = reference.joined,
                             .batch = reference.batch};
    for (size_t i = 0; i < reference.tokens.size(); ++i) {
      const GraphPlace& place = reference.places[i];
      LearnedLaunch launch{.kind = reference.tokens[i].kind, .module = Said(place.module), .op = Said(place.op)};
      if (place.kernel.valid()) std::tie(launch.family, launch.stem) = Normalized(place.kernel);
      sequence.launches.push_back(launch);
    }
    Keep(std::move(sequence));
  }

  /// Of another learned file: so files are merged.
  void Add(LearnedSequence sequence) {
    sequence.model = ModelOf({true, sequence.file.valid() ? sequence.file.value() : 0, sequence.model});
    sequence.file = {};
    Keep(std::move(sequence));
  }

  uint64_t left_out() const { return left_out_; }

  std::vector<LearnedSequence> Take() {
    std::stable_sort(kept_.begin(), kept_.end(),
                     [](const LearnedSequence& a, const LearnedSequence& b) { return a.source < b.source; });
    // Numbers by first use, so that they do not tell what was left out.
    std::map<uint32_t, uint32_t> numbers;
    for (LearnedSequence& sequence : kept_)
      sequence.model = numbers.try_emplace(sequence.model, static_cast<uint32_t>(numbers.size())).first->second;
    return std::move(kept_);
  }

 private:
  StringId Said(StringId id) const { return store_.text(id).empty() ? StringId() : id; }

  std::pair<StringId, StringId> Normalized(StringId kernel) {
    const auto [it, fresh] = names_.try_emplace(kernel);
    if (fresh) {
      const std::string family = FamilyOfName(store_.text(kernel));
      const std::string stem = StemOfName(store_.text(kernel));
      it->second = {store_.strings.Intern(family), store_.strings.Intern(stem)};
    }
    return it->second;
  }

  uint32_t ModelOf(const std::tuple<bool, uint32_t, uint32_t>& from) {
    return models_.try_emplace(from, static_cast<uint32_t>(models_.size())).first->second;
  }
  uint32_t ModelOf(const std::pair<bool, uint32_t>& process) { return ModelOf({process.first, process.second, 0}); }

  static uint64_t Hash(const LearnedSequence& sequence) {
    uint64_t hash = sequence.launches.size() * 4 + sequence.whole * 2 + sequence.joined;
    for (const LearnedLaunch& launch : sequence.launches) {
      const auto mix = [&hash](uint64_t part) {
        hash = (hash ^ part) * 0x9E3779B97F4A7C15ULL;
        hash ^= hash >> 29;
      };
      mix(static_cast<uint64_t>(launch.kind));
      for (const StringId part : {launch.family, launch.stem, launch.module, launch.op})
        mix(part.valid() ? part.value() + 1 : 0);
    }
    return hash;
  }

  /// Batches differ in tiles only, which are not kept: of sequences that say the same one is enough.
  bool IsKnown(const LearnedSequence& sequence, uint64_t hash) const {
    const auto [first, last] = seen_.equal_range(hash);
    return std::any_of(first, last, [&](const auto& entry) {
      const LearnedSequence& other = kept_[entry.second];
      return other.source == sequence.source && other.whole == sequence.whole && other.joined == sequence.joined &&
             other.launches == sequence.launches;
    });
  }

  void Keep(LearnedSequence sequence) {
    const uint64_t hash = Hash(sequence);
    if (IsKnown(sequence, hash)) return;
    if (kept_.size() >= trace::kMaxLearnedSequences || sequence.launches.size() > trace::kMaxSequenceLaunches ||
        sequence.launches.size() > trace::kMaxLearnedLaunches - launches_) {
      ++left_out_;
      return;
    }
    launches_ += sequence.launches.size();
    seen_.emplace(hash, kept_.size());
    kept_.push_back(std::move(sequence));
  }

  trace::Store& store_;
  std::vector<LearnedSequence> kept_;
  std::multimap<uint64_t, size_t> seen_;  // hash -> index into kept_
  std::map<StringId, std::pair<StringId, StringId>> names_;
  std::map<std::tuple<bool, uint32_t, uint32_t>, uint32_t> models_;
  size_t launches_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace

std::vector<LearnedSequence> LearnSequences(trace::Store& store, const trace::Trees& trees, uint64_t& left_out) {
  GraphTokens tokens(store);
  const std::vector<GraphReference> references = FindGraphReferences(store, trees, tokens);
  Learner learner(store);
  for (const GraphSource source : {GraphSource::kCapture, GraphSource::kEager}) {
    for (const LearnedSequence& sequence : store.learned_graphs) {
      if (sequence.source == source) learner.Add(sequence);
    }
    for (const GraphReference& reference : references) {
      if (reference.source == source) learner.Add(reference);
    }
  }
  left_out = learner.left_out();
  return learner.Take();
}

void AddLearned(const trace::Store& store, GraphTokens& tokens, std::vector<GraphReference>& references) {
  std::map<std::pair<StringId, StringId>, uint32_t> places;
  for (const LearnedSequence& sequence : store.learned_graphs) {
    GraphReference reference{.learned = sequence.file,
                             .model = sequence.model,
                             .source = GraphSource::kLearned,
                             .whole = sequence.whole,
                             .joined = sequence.joined,
                             .batch = sequence.batch};
    for (const LearnedLaunch& launch : sequence.launches) {
      GraphToken token = tokens.OfLearned(launch);
      token.place =
          places.try_emplace({launch.module, launch.op}, static_cast<uint32_t>(places.size() + 1)).first->second;
      reference.names_kernels = reference.names_kernels && token.name != 0;
      reference.tokens.push_back(token);
      reference.places.push_back({.launch = {}, .module = launch.module, .op = launch.op, .kernel = {}});
    }
    references.push_back(std::move(reference));
  }
}

}  // namespace teller::tree
