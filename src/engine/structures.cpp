#include "engine/structures.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

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

base::Status AddRun(const Run& run, const std::string& path, Structures& out) {
  encode::ForestBuilder builder(run.store, run.trees, out.table);
  std::map<std::pair<trace::FileRow, std::string>, uint32_t> rows;
  out.spans += builder.traced_spans();
  const bool lost = run.store.diagnostics.LostInput();
  const size_t before = out.pieces.size();
  if (lost) out.lost.push_back(path);
  for (const encode::Segment& segment : encode::SegmentsOf(run.store, run.trees)) {
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
  if (out.pieces.size() == before) out.skipped.push_back({path, "holds no spans", lost});
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

}  // namespace

base::Result<Structures> ReadStructures(std::vector<std::string> paths, unsigned threads, base::Progress* progress) {
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  Structures out;
  std::optional<base::Error> damage;
  for (size_t i = 0; i < paths.size(); ++i) {
    RunProgress part(progress, i, paths.size());
    const Options options{.inputs = {.paths = {paths[i]}}, .threads = threads, .progress = &part};
    const auto run = Open(options);
    if (!run) {
      if (!Skip(run.error(), paths[i], out)) return run.error();
      if (out.skipped.back().lost && !damage) damage = run.error();
      continue;
    }
    TELLER_TRY(AddRun(run.value(), paths[i], out));
  }
  if (out.pieces.empty()) {
    if (damage) return *damage;
    return base::Error{.code = base::Code::kNotFound,
                       .message = "no spans in what was named: give traces",
                       .path = paths.empty() ? std::string() : paths.front()};
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
