#include "report/tokens_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "report/diagnosis_json.hpp"

namespace teller::report {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kSchema = "teller.tokens/1";

std::string Compact(const Json& value) {
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
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

}  // namespace

std::string HexText(uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

std::string TokensHead(const engine::NamedVocabulary& vocabulary) {
  Json out;
  out["schema"] = kSchema;
  out["vocabulary"] = {{"name", vocabulary.name},
                       {"fingerprint", HexText(vocabulary.fingerprint)},
                       {"entries", vocabulary.vocabulary.size()},
                       {"merges", vocabulary.vocabulary.merge_count()}};
  std::string text = Compact(out);
  text.pop_back();
  return text + ",\"segments\":[\n";
}

std::string TokensSegment(const engine::Run& run, const engine::EncodedSegment& encoded) {
  const size_t n = encoded.tokens.size();
  Json parent = Json::array(), parent_offset = Json::array(), total = Json::array(), self = Json::array();
  Json worst_offset = Json::array(), worst_z = Json::array(), worst_excess = Json::array(), worst_span = Json::array();
  for (size_t t = 0; t < n; ++t) {
    const encode::TokenAttributes& token = encoded.attributes[t];
    const bool has_parent = token.parent.token != tpe::kNoToken;
    parent.push_back(has_parent ? Json(token.parent.token) : Json(nullptr));
    parent_offset.push_back(has_parent ? Json(token.parent.offset) : Json(nullptr));
    total.push_back(token.total);
    self.push_back(token.self);
    const bool known = token.worst.known();
    const size_t node = encoded.tokens.first_node[t] + token.worst_offset;
    const bool span = known && encoded.forest.span[node].valid();
    worst_offset.push_back(known ? Json(token.worst_offset) : Json(nullptr));
    worst_z.push_back(known ? Json(Rounded(static_cast<double>(token.worst.z))) : Json(nullptr));
    worst_excess.push_back(known ? Json(token.worst.excess) : Json(nullptr));
    worst_span.push_back(span ? Json(encoded.forest.span[node].value()) : Json(nullptr));
  }
  Json hashes = Json::array(), nodes = Json::array();
  for (const encode::UnknownNode& unknown : encoded.unknown) {
    nodes.push_back(unknown.node);
    hashes.push_back(HexText(unknown.name_hash));
  }
  Json out = Label(run, encoded);
  out["tokens"] = n;
  out["id"] = encoded.tokens.ids;
  out["depth"] = encoded.tokens.depths;
  out["parent"] = std::move(parent);
  out["parent_offset"] = std::move(parent_offset);
  out["total_ns"] = std::move(total);
  out["self_ns"] = std::move(self);
  out["worst_offset"] = std::move(worst_offset);
  out["worst_z"] = std::move(worst_z);
  out["worst_excess_ns"] = std::move(worst_excess);
  out["worst_span"] = std::move(worst_span);
  out["unknown"] = {{"node", std::move(nodes)}, {"hash", std::move(hashes)}};
  return Compact(out);
}

std::string TokensTail() {
  return "\n]}\n";
}

}  // namespace teller::report
