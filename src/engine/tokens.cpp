#include "engine/tokens.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "encode/normal.hpp"
#include "tpe/encoder.hpp"

namespace teller::engine {

namespace {

using encode::Segment;

bool Wanted(const Run& run, const Segment& segment, const TokenOptions& options, bool any_step) {
  const trace::Process& process = run.store.processes[segment.process.value()];
  if (options.rank && process.rank != options.rank) return false;
  if (options.step) return segment.step.valid() && run.trees.steps[segment.step.value()].index == *options.step;
  return options.all || segment.kind == Segment::Kind::kStep || !any_step;
}

base::Error Nothing(const TokenOptions& options) {
  std::string what = "no spans to encode: give a trace";
  if (options.step)
    what = fmt::format("no step {}{} in this run", *options.step,
                       options.rank ? fmt::format(" of rank {}", *options.rank) : "");
  if (!options.step && options.rank) what = fmt::format("no spans of rank {} in this run", *options.rank);
  return {.code = base::Code::kNotFound, .message = what};
}

}  // namespace

base::Status EncodeRun(const Run& run, const NamedVocabulary& vocabulary, const TokenOptions& options,
                       base::Progress* progress, const std::function<base::Status(const EncodedSegment&)>& sink) {
  const std::vector<Segment> segments = encode::SegmentsOf(run.store, run.trees);
  encode::SymbolTable table;
  encode::ForestBuilder builder(run.store, run.trees, table);
  encode::VocabularySymbols symbols(vocabulary.vocabulary, table);
  TELLER_TRY(symbols.Check());
  const auto at = [&](uint64_t done) -> base::Status {
    if (progress == nullptr) return {};
    progress->Update("encoding", done, 2 * segments.size());
    if (progress->cancelled()) return base::Error{.code = base::Code::kCancelled, .message = "stopped"};
    return {};
  };
  encode::NodeNormals normals(run.store, run.trees);
  for (size_t i = 0; i < segments.size(); ++i) {
    TELLER_TRY(at(i));
    normals.Add(segments[i], builder.Build(segments[i]));
  }
  normals.Finish();

  const tpe::Encoder encoder(vocabulary.vocabulary);
  tpe::EncodeScratch scratch;
  const bool any_step = !run.trees.steps.empty();
  bool any = false;
  for (size_t i = 0; i < segments.size(); ++i) {
    TELLER_TRY(at(segments.size() + i));
    if (!Wanted(run, segments[i], options, any_step)) continue;
    EncodedSegment out{.segment = segments[i], .forest = builder.Build(segments[i])};
    if (out.forest.size() == 0) continue;
    const std::vector<uint32_t> ids = symbols.Of(out.forest.symbol, &out.unknown);
    TELLER_TRY(encoder.Encode(encode::View(ids, out.forest), scratch, out.tokens));
    out.attributes = encode::Attributes(out.forest, out.tokens, normals.Judge(segments[i], out.forest));
    any = true;
    TELLER_TRY(sink(out));
  }
  if (!any) return Nothing(options);
  return {};
}

}  // namespace teller::engine
