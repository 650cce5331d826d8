#include "engine/tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

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

/// The spans that prove the findings of a diagnosis.
class EvidenceSpans {
 public:
  explicit EvidenceSpans(const trace::Diagnosis* diagnosis) {
    if (diagnosis == nullptr) return;
    for (uint32_t f = 0; f < diagnosis->findings.size(); ++f) {
      const auto& evidence = diagnosis->findings[f].evidence;
      for (uint32_t e = 0; e < evidence.size(); ++e) {
        if (evidence[e].span.valid()) by_span_[evidence[e].span.value()].push_back({.finding = f, .evidence = e});
      }
    }
  }

  /// Those among the nodes of a segment.
  std::vector<TokenEvidence> In(const encode::Forest& forest, const tpe::Tokens& tokens) const {
    std::vector<TokenEvidence> out;
    if (by_span_.empty()) return out;
    uint32_t token = 0;
    for (uint32_t node = 0; node < forest.size(); ++node) {
      if (token + 1 < tokens.size() && tokens.first_node[token + 1] == node) ++token;
      if (!forest.span[node].valid()) continue;
      const auto it = by_span_.find(forest.span[node].value());
      if (it == by_span_.end()) continue;
      for (TokenEvidence found : it->second) {
        found.token = token;
        found.offset = node - tokens.first_node[token];
        out.push_back(found);
      }
    }
    return out;
  }

 private:
  std::unordered_map<uint32_t, std::vector<TokenEvidence>> by_span_;
};

std::vector<Accusation> AccusationsOf(const trace::Diagnosis* diagnosis, const Segment& segment) {
  std::vector<Accusation> out;
  if (diagnosis == nullptr || !segment.step.valid()) return out;
  for (uint32_t f = 0; f < diagnosis->findings.size(); ++f) {
    for (const trace::AbnormalStep& step : diagnosis->findings[f].steps) {
      if (step.row == segment.step) out.push_back({f, step.score});
    }
  }
  return out;
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

  const EvidenceSpans evidence(options.diagnosis);
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
    out.accusations = AccusationsOf(options.diagnosis, segments[i]);
    out.evidence = evidence.In(out.forest, out.tokens);
    any = true;
    TELLER_TRY(sink(out));
  }
  if (!any) return Nothing(options);
  return {};
}

}  // namespace teller::engine
