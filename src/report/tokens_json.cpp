#include "report/tokens_json.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "report/diagnosis_json.hpp"

namespace teller::report {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kSchema = "teller.tokens/1";
constexpr std::string_view kSchemaName = "teller.tokens/";

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

/// The numbers of a column; none when it is no array of numbers that fit.
template <class Number>
std::optional<std::vector<Number>> Column(const Json& from, const char* key) {
  const auto it = from.find(key);
  if (it == from.end() || !it->is_array()) return std::nullopt;
  std::vector<Number> out;
  out.reserve(it->size());
  for (const Json& value : *it) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > std::numeric_limits<Number>::max()) return std::nullopt;
    out.push_back(static_cast<Number>(value.get<uint64_t>()));
  }
  return out;
}

std::optional<uint64_t> Hex(const Json& value) {
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.get_ref<const std::string&>();
  uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

bool ReadUnknown(const Json& from, std::vector<encode::UnknownNode>& out) {
  const auto nodes = Column<uint32_t>(from, "node");
  const auto hashes = from.find("hash");
  if (!nodes || hashes == from.end() || !hashes->is_array() || hashes->size() != nodes->size()) return false;
  for (size_t i = 0; i < nodes->size(); ++i) {
    const auto hash = Hex((*hashes)[i]);
    if (!hash) return false;
    out.push_back({(*nodes)[i], *hash});
  }
  return true;
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

base::Result<ReadTokens> TokensFromJson(std::string_view text, const std::string& path) {
  const auto bad = [&](base::Code code, std::string what) {
    return base::Error{
        .code = code, .message = std::move(what) + "; teller tpe encode --json writes what is read here", .path = path};
  };
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return bad(base::Code::kBadFormat, "no JSON object");
  const auto schema = json.find("schema");
  if (schema == json.end() || !schema->is_string() || !schema->get_ref<const std::string&>().starts_with(kSchemaName))
    return bad(base::Code::kBadFormat, "no tokens (schema teller.tokens/1)");
  if (schema->get_ref<const std::string&>() != kSchema)
    return bad(base::Code::kUnsupported, "another version of teller.tokens");
  ReadTokens out;
  const auto vocabulary = json.find("vocabulary");
  const auto segments = json.find("segments");
  if (vocabulary == json.end() || !vocabulary->is_object() || !vocabulary->contains("fingerprint") ||
      segments == json.end() || !segments->is_array())
    return bad(base::Code::kBadFormat, "tokens without vocabulary or segments");
  const auto fingerprint = Hex((*vocabulary)["fingerprint"]);
  if (!fingerprint) return bad(base::Code::kBadFormat, "the vocabulary's fingerprint is no hexadecimal number");
  out.fingerprint = *fingerprint;
  if (const auto name = vocabulary->find("name"); name != vocabulary->end() && name->is_string())
    out.vocabulary = *name;
  for (size_t s = 0; s < segments->size(); ++s) {
    const Json& from = (*segments)[s];
    const std::string place = fmt::format("segment {}: ", s);
    if (!from.is_object()) return bad(base::Code::kBadFormat, place + "no object");
    auto ids = Column<uint32_t>(from, "id");
    auto depths = Column<uint32_t>(from, "depth");
    if (!ids || !depths || ids->size() != depths->size())
      return bad(base::Code::kBadFormat, place + "\"id\" and \"depth\" are no columns of numbers of one length");
    ReadSegment segment{.ids = std::move(*ids), .depths = std::move(*depths)};
    if (const auto unknown = from.find("unknown"); unknown == from.end() || !ReadUnknown(*unknown, segment.unknown))
      return bad(base::Code::kBadFormat, place + "\"unknown\" has no columns \"node\" and \"hash\" of one length");
    for (const char* key : {"kind", "process", "rank", "engine", "step", "step_kind", "begin_ns", "end_ns", "nodes"}) {
      if (const auto it = from.find(key); it != from.end() && it->is_primitive()) segment.label[key] = *it;
    }
    out.segments.push_back(std::move(segment));
  }
  return out;
}

}  // namespace teller::report
