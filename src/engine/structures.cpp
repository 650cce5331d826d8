#include "engine/structures.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "encode/symbol_ids.hpp"

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

std::string PathOf(const std::string& run, const std::string& file) {
  if (file.empty() || file == run || run.ends_with("/" + file)) return run;
  return run.ends_with('/') ? run + file : run + "/" + file;
}

base::Status AddRun(const Run& run, const std::string& path, Structures& out) {
  encode::ForestBuilder builder(run.store, run.trees, out.table);
  std::map<std::pair<trace::FileRow, std::string>, uint32_t> rows;
  out.spans += builder.traced_spans();
  out.lost_input = out.lost_input || run.store.diagnostics.LostInput();
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
          {.path = PathOf(path, file), .run = path, .engine = engine, .has_steps = !run.trees.steps.empty()});
    }
    out.pieces.push_back({.source = it->second,
                          .kind = segment.kind,
                          .begin = out.symbols.size(),
                          .size = static_cast<uint32_t>(forest.size()),
                          .structure = forest.structure});
    out.symbols.insert(out.symbols.end(), forest.symbol.begin(), forest.symbol.end());
    out.depths.insert(out.depths.end(), forest.depth.begin(), forest.depth.end());
  }
  return {};
}

}  // namespace

base::Result<Structures> ReadStructures(std::vector<std::string> paths, unsigned threads, base::Progress* progress) {
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  Structures out;
  for (size_t i = 0; i < paths.size(); ++i) {
    RunProgress part(progress, i, paths.size());
    const Options options{.inputs = {.paths = {paths[i]}}, .threads = threads, .progress = &part};
    const auto run = Open(options);
    std::error_code ignored;
    if (!run && run.error().code == base::Code::kNotFound && std::filesystem::exists(paths[i], ignored)) {
      out.skipped.push_back(paths[i]);
      continue;
    }
    if (!run) return run.error();
    TELLER_TRY(AddRun(run.value(), paths[i], out));
  }
  if (out.pieces.empty()) {
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
