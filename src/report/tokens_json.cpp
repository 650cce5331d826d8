#include "report/tokens_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "report/chunks.hpp"
#include "report/diagnosis_json.hpp"

namespace teller::report {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kSchema = "teller.tokens/1";

std::string Compact(const Json& value) {
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

template <class Number>
std::string Text(Number value) {
  return fmt::format_int(value).str();
}

/// Three decimals are more than a robust scale is known to.
double Rounded(double value) {
  return std::round(value * 1000) / 1000;
}

Json Label(const engine::Run& run, const engine::EncodedSegment& encoded) {
  const encode::Segment& segment = encoded.segment;
  const trace::Process& process = run.store.processes[segment.process.value()];
  Json out;
  out["kind"] = encode::Name(segment.kind);
  out["process"] = segment.process.value();
  out["rank"] = process.rank ? Json(*process.rank) : Json(nullptr);
  out["engine"] = process.engine.empty() ? Json(nullptr) : Json(process.engine);
  const bool is_step = segment.step.valid();
  const trace::Step* step = is_step ? &run.trees.steps[segment.step.value()] : nullptr;
  out["step"] = is_step ? Json(step->index) : Json(nullptr);
  out["step_kind"] = is_step ? Json(trace::Name(step->kind)) : Json(nullptr);
  out["begin_ns"] = is_step ? JsonTime(step->begin) : JsonTime(segment.begin);
  out["end_ns"] = is_step ? JsonTime(step->end) : JsonTime(segment.end);
  out["nodes"] = encoded.forest.size();
  out["structure_nodes"] = encoded.forest.structure;
  return out;
}

/// Columns of the tokens' evidence.
void AddEvidence(const std::vector<engine::TokenEvidence>& evidence, const trace::Diagnosis& diagnosis, Chunks& out) {
  const auto finding = [&](size_t i) -> const trace::Finding& { return diagnosis.findings[evidence[i].finding]; };
  const auto id = [&](size_t i) { return finding(i).evidence[evidence[i].evidence].id; };
  const size_t n = evidence.size();
  out.Add(",\"evidence\":{\"id\":[");
  for (size_t i = 0; i < n && out.ok(); ++i) out.Add((i == 0 ? "" : ",") + Compact(Json(id(i))));
  out.Add("]");
  AddColumn(out, "finding", n, [&](size_t i) { return Compact(Json(finding(i).id)); });
  AddColumn(out, "token", n, [&](size_t i) { return Text(evidence[i].token); });
  AddColumn(out, "offset", n, [&](size_t i) { return Text(evidence[i].offset); });
  out.Add("}");
}

}  // namespace

std::string HexText(uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

std::string TokensHead(const engine::NamedVocabulary& vocabulary, const trace::Diagnosis* diagnosis) {
  Json out;
  out["schema"] = kSchema;
  out["vocabulary"] = {{"name", vocabulary.name},
                       {"fingerprint", HexText(vocabulary.fingerprint)},
                       {"entries", vocabulary.vocabulary.size()},
                       {"merges", vocabulary.vocabulary.merge_count()}};
  if (diagnosis != nullptr) {
    out["verdict"] = trace::Name(diagnosis->status);
    out["findings"] = Json::array();
    for (const trace::Finding& finding : diagnosis->findings) {
      out["findings"].push_back({{"id", finding.id},
                                 {"class", trace::Name(finding.fault)},
                                 {"score", Rounded(finding.score)},
                                 {"rank", finding.culprit.rank ? Json(*finding.culprit.rank) : Json(nullptr)},
                                 {"op", finding.culprit.op.empty() ? Json(nullptr) : Json(finding.culprit.op)}});
    }
  }
  std::string text = Compact(out);
  text.pop_back();
  return text + ",\"segments\":[\n";
}

base::Status WriteTokensSegment(const engine::Run& run, const engine::EncodedSegment& encoded,
                                const trace::Diagnosis* diagnosis, const Sink& sink) {
  const size_t n = encoded.tokens.size();
  const auto parent = [&](size_t t) -> const tpe::Constituent& { return encoded.attributes[t].parent; };
  const auto has_parent = [&](size_t t) { return parent(t).token != tpe::kNoToken; };
  const auto worst = [&](size_t t) -> const encode::Residual& { return encoded.attributes[t].worst; };
  const auto worst_offset = [&](size_t t) { return encoded.attributes[t].worst_offset; };
  const auto worst_span = [&](size_t t) {
    return worst(t).known() ? encoded.forest.span[encoded.tokens.first_node[t] + worst_offset(t)] : trace::SpanRow();
  };
  const auto or_null = [](bool known, auto value) { return known ? Text(value) : std::string("null"); };

  Chunks out(sink);
  Json label = Label(run, encoded);
  if (diagnosis != nullptr) {
    label["accused"] = Json::array();
    for (const engine::Accusation& one : encoded.accusations)
      label["accused"].push_back({{"finding", diagnosis->findings[one.finding].id}, {"score", Rounded(one.score)}});
  }
  label["tokens"] = n;
  std::string head = Compact(label);
  head.pop_back();
  out.Add(head);
  AddColumn(out, "id", n, [&](size_t t) { return Text(encoded.tokens.ids[t]); });
  AddColumn(out, "depth", n, [&](size_t t) { return Text(encoded.tokens.depths[t]); });
  AddColumn(out, "parent", n, [&](size_t t) { return or_null(has_parent(t), parent(t).token); });
  AddColumn(out, "parent_offset", n, [&](size_t t) { return or_null(has_parent(t), parent(t).offset); });
  AddColumn(out, "total_ns", n, [&](size_t t) { return Text(encoded.attributes[t].total); });
  AddColumn(out, "self_ns", n, [&](size_t t) { return Text(encoded.attributes[t].self); });
  AddColumn(out, "worst_offset", n, [&](size_t t) { return or_null(worst(t).known(), worst_offset(t)); });
  AddColumn(out, "worst_z", n, [&](size_t t) {
    return worst(t).known() ? Compact(Json(Rounded(static_cast<double>(worst(t).z)))) : std::string("null");
  });
  AddColumn(out, "worst_excess_ns", n, [&](size_t t) { return or_null(worst(t).known(), worst(t).excess); });
  AddColumn(out, "worst_span", n, [&](size_t t) {
    const trace::SpanRow span = worst_span(t);
    return span.valid() ? Text(span.value()) : std::string("null");
  });
  if (diagnosis != nullptr) AddEvidence(encoded.evidence, *diagnosis, out);
  // The first member of its object.
  const auto& unknown = encoded.unknown;
  out.Add(",\"unknown\":{\"node\":[");
  for (size_t i = 0; i < unknown.size() && out.ok(); ++i) out.Add((i == 0 ? "" : ",") + Text(unknown[i].node));
  out.Add("]");
  AddColumn(out, "hash", unknown.size(), [&](size_t i) { return '"' + HexText(unknown[i].name_hash) + '"'; });
  out.Add("}}");
  return out.End();
}

std::string TokensTail() {
  return "\n]}\n";
}

}  // namespace teller::report
