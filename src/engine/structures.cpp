#include "engine/structures.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "encode/symbol_ids.hpp"
#include "engine/run_path.hpp"

namespace teller::engine {

namespace {

/// Tells the stage of the run that is being read, not that of the reader.
class RunProgress : public base::Progress {
 public:
  RunProgress(base::Progress* to, size_t run, size_t runs) : to_(to), run_(run), runs_(runs) {}
  void Update(std::string_view, uint64_t done, uint64_t total) override {
    if (to_ == nullptr) return;
    const uint64_t part = total == 0 ? 0 : std::min<uint64_t>(100, done * 100 / total);
    to_->Update("reading runs", 100 * run_ + part, 100 * runs_);
    if (to_->cancelled()) Cancel();
  }

 private:
  base::Progress* to_;
  size_t run_;
  size_t runs_;
};

/// Files that were read: the run that each belongs to, by canonical path; run and path, by what was recorded.
struct KnownFiles {
  std::map<std::string, std::string> runs;
  std::map<uint64_t, std::pair<std::string, std::string>> recordings;
};

uint64_t Mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 31);
}

/// What each traced file of the store recorded, whatever it is called and packed in: the spans' names, lengths and
/// distances. Lengths in nanoseconds are of one recording only. 0 = no spans.
std::vector<uint64_t> RecordingsOf(const trace::Store& store) {
  std::vector<uint64_t> out(store.files.size());
  for (const trace::Track& track : store.tracks) {
    const trace::Process& process = store.processes[track.process.value()];
    if (!process.file.valid() || process.service || track.span_count == 0) continue;
    uint64_t hash = track.span_count;
    for (uint32_t span = track.first_span; span < track.first_span + track.span_count; ++span) {
      hash = Mixed(hash, tpe::NameHash(store.name(span)));
      hash = Mixed(hash, static_cast<uint64_t>(store.spans.duration[span]));
      hash = Mixed(hash, static_cast<uint64_t>(store.spans.begin[span] - store.spans.begin[track.first_span]));
    }
    out[process.file.value()] += hash;  // tracks in any order
  }
  return out;
}

/// Whether each file of the store was read as part of another run before; takes those down that hold spans, and knows
/// the others from now on.
std::vector<bool> RepeatedFiles(const trace::Store& store, const std::string& run, KnownFiles& known, Structures& out) {
  const std::vector<uint64_t> recordings = RecordingsOf(store);
  std::vector<bool> repeated(store.files.size());
  for (size_t f = 0; f < store.files.size(); ++f) {
    if (recordings[f] == 0) continue;
    const std::string path = PathInRun(run, store.files[f].path);
    const auto [it, fresh] = known.runs.try_emplace(CanonicalPath(path), run);
    if (!fresh && it->second != run) {
      repeated[f] = true;
      out.skipped.push_back({path, "already read as part of " + it->second});
      continue;
    }
    const auto [same, new_recording] = known.recordings.try_emplace(recordings[f], run, path);
    if (new_recording || same->second.first == run) continue;
    repeated[f] = true;
    out.skipped.push_back({path, "holds the same recording as " + same->second.second});
  }
  return repeated;
}

base::Status AddRun(const Run& run, const std::string& path, KnownFiles& known, Structures& out) {
  encode::ForestBuilder builder(run.store, run.trees, out.table);
  std::map<std::pair<trace::FileRow, std::string>, uint32_t> rows;
  const std::vector<bool> repeated = RepeatedFiles(run.store, path, known, out);
  const auto skip = [&](trace::ProcessRow process) {
    const trace::FileRow file = run.store.processes[process.value()].file;
    return file.valid() && repeated[file.value()];
  };
  for (const trace::Track& track : run.store.tracks) {
    if (track.process.valid() && !run.store.processes[track.process.value()].service && !skip(track.process))
      out.spans += track.span_count;
  }
  const bool lost = run.store.diagnostics.LostInput();
  const size_t before = out.pieces.size();
  if (lost) out.lost.push_back(path);
  for (const encode::Segment& segment : encode::SegmentsOf(run.store, run.trees)) {
    if (skip(segment.process)) continue;
    const trace::Process& process = run.store.processes[segment.process.value()];
    const encode::Forest forest = builder.Build(segment);
    if (forest.size() == 0) continue;
    if (out.symbols.size() + forest.size() > tpe::kMaxNodes) {
      return base::Error{.code = base::Code::kLimit, .message = "too many nodes in all; name fewer runs", .path = path};
    }
    const std::string engine = process.engine.empty() ? "other" : process.engine;
    const auto [it, fresh] = rows.try_emplace({process.file, engine}, static_cast<uint32_t>(out.sources.size()));
    if (fresh) {
      const std::string file = process.file.valid() ? run.store.files[process.file.value()].path : std::string();
      out.sources.push_back(
          {.path = PathInRun(path, file), .run = path, .engine = engine, .has_steps = !run.trees.steps.empty()});
    }
    out.pieces.push_back({.source = it->second,
                          .kind = segment.kind,
                          .begin = out.symbols.size(),
                          .size = static_cast<uint32_t>(forest.size()),
                          .structure = forest.structure});
    out.symbols.insert(out.symbols.end(), forest.symbol.begin(), forest.symbol.end());
    out.depths.insert(out.depths.end(), forest.depth.begin(), forest.depth.end());
  }
  const bool any_repeated = std::find(repeated.begin(), repeated.end(), true) != repeated.end();
  if (out.pieces.size() == before && !any_repeated) out.skipped.push_back({path, "holds no spans", lost});
  return {};
}

/// Takes down that a run cannot be used; false when that must not be passed over.
bool Skip(const base::Error& error, const std::string& path, Structures& out) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return false;
  switch (error.code) {
    case base::Code::kNotFound: out.skipped.push_back({path, "holds nothing that can be read"}); return true;
    case base::Code::kBadFormat:
    case base::Code::kUnreadable: {
      base::Error why = error;
      if (why.path == path) why.path.clear();
      out.skipped.push_back({path, why.Text(), true});
      out.lost.push_back(path);
      return true;
    }
    default: return false;
  }
}

/// `test`, then `paths`, each by canonical path, so that the order does not depend on spelling; of several spellings
/// one stays.
std::vector<std::string> InOrder(const std::vector<std::string>& test, const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (const auto* group : {&test, &paths}) {
    std::set<std::pair<std::string, std::string>> spellings;
    for (const std::string& path : *group) spellings.emplace(CanonicalPath(path), path);
    for (const auto& [canonical, path] : spellings) {
      if (seen.insert(canonical).second) out.push_back(path);
    }
  }
  return out;
}

}  // namespace

base::Result<Structures> ReadStructures(const StructureInputs& inputs, unsigned threads, base::Progress* progress) {
  const std::vector<std::string> runs = InOrder(inputs.test, inputs.paths);
  for (const std::string& file : inputs.graphs) {
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored))
      return base::Error{.code = base::Code::kNotFound, .message = "no such file or directory", .path = file};
  }
  Structures out;
  KnownFiles known;
  std::optional<base::Error> damage;
  for (size_t i = 0; i < runs.size(); ++i) {
    RunProgress part(progress, i, runs.size());
    const Options options{
        .inputs = {.paths = {runs[i]}, .graphs = inputs.graphs}, .threads = threads, .progress = &part};
    const auto run = Open(options);
    if (!run) {
      if (!Skip(run.error(), runs[i], out)) return run.error();
      if (out.skipped.back().lost && !damage) damage = run.error();
      continue;
    }
    TELLER_TRY(AddRun(run.value(), runs[i], known, out));
  }
  if (out.pieces.empty()) {
    if (damage) return *damage;
    return base::Error{.code = base::Code::kNotFound,
                       .message = out.lost.empty() ? "no spans in what was named: give traces"
                                                   : "nothing is left of what was recorded; teller inspect says what "
                                                     "was lost",
                       .path = out.lost.empty() ? (runs.empty() ? std::string() : runs.front()) : out.lost.front()};
  }
  return out;
}

base::Result<tpe::Corpus> CorpusOf(const Structures& structures, const std::vector<bool>& sources) {
  tpe::Corpus corpus;
  TELLER_TRY(encode::AddLayers(corpus));
  encode::CorpusSymbols symbols(corpus);
  for (const Structures::Piece& piece : structures.pieces) {
    if (!sources.empty() && !sources[piece.source]) continue;
    const auto ids = symbols.Of(structures.SymbolsOf(piece), structures.table);
    if (!ids) return ids.error();
    TELLER_TRY(corpus.Add({ids.value(), structures.DepthsOf(piece)}));
  }
  return corpus;
}

}  // namespace teller::engine
