#include "report/tokens_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/printable.hpp"
#include "report/summary.hpp"
#include "report/token_names.hpp"
#include "report/tokens_json.hpp"
#include "report/units.hpp"

namespace teller::report {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kIndent = 2;
constexpr size_t kShownNodes = 6;  // of a token on one line

std::string SegmentLabel(const engine::Run& run, const encode::Segment& segment) {
  std::string out = ProcessLabel(run.store, segment.process);
  if (!segment.step.valid()) return out + ", " + std::string(encode::Name(segment.kind));
  const trace::Step& step = run.trees.steps[segment.step.value()];
  return out + fmt::format(", step {} {}", step.index, trace::Name(step.kind));
}

double Saved(size_t nodes, size_t tokens) {
  return nodes == 0 ? 0 : 100 * (1 - static_cast<double>(tokens) / static_cast<double>(nodes));
}

/// The name of each unknown node of a segment that was read.
std::map<uint32_t, uint64_t> HashesOf(const ReadSegment& segment) {
  std::map<uint32_t, uint64_t> out;
  for (const encode::UnknownNode& unknown : segment.unknown) out.emplace(unknown.node, unknown.name_hash);
  return out;
}

std::string NodeName(const tpe::Vocabulary& vocabulary, uint32_t id, const std::map<uint32_t, uint64_t>& hashes,
                     uint32_t node) {
  std::string name = EntryName(vocabulary, id);
  if (vocabulary.kind(id) != tpe::EntryKind::kUnknown) return name;
  const auto hash = hashes.find(node);
  return hash == hashes.end() ? name : name + " " + HexText(hash->second);
}

std::string Member(const ReadSegment& segment, const char* key) {
  const auto it = segment.label.find(key);
  if (it == segment.label.end() || it->is_null()) return {};
  return it->is_string() ? it->get<std::string>() : it->dump();
}

}  // namespace

std::string TokensText::Worst(const engine::EncodedSegment& encoded, size_t token) const {
  const encode::TokenAttributes& attributes = encoded.attributes[token];
  if (!attributes.worst.known()) return "not judged";
  const size_t node = encoded.tokens.first_node[token] + attributes.worst_offset;
  const trace::SpanRow span = encoded.forest.span[node];
  return fmt::format("z {:.1f}, {}{} at {}: {}", static_cast<double>(attributes.worst.z),
                     attributes.worst.excess < 0 ? "-" : "+", Duration(std::abs(attributes.worst.excess)),
                     attributes.worst_offset,
                     span.valid() ? run_.store.name(span.value()) : std::string_view("structure"));
}

std::string TokensText::Head() const {
  Page page(options_);
  page.Line(0, fmt::format("vocabulary {}: {} names, {} merges", vocabulary_.name,
                           Count(vocabulary_.vocabulary.base_count()), Count(vocabulary_.vocabulary.merge_count())));
  page.Line(0,
            fmt::format("{:>9} {:>8} {:>7} {:>8}  segment; worst constituent", "nodes", "tokens", "saved", "unknown"),
            Ink::kDim);
  return page.Take();
}

std::string TokensText::Segment(const engine::EncodedSegment& encoded, bool tokens) const {
  Page page(options_);
  size_t worst = 0;
  for (size_t t = 0; t < encoded.attributes.size(); ++t) {
    if (encoded.attributes[t].worst.z > encoded.attributes[worst].worst.z) worst = t;
  }
  page.Line(0, fmt::format("{:>9} {:>8} {:>6.1f}% {:>8}  {}; {}", Count(encoded.forest.size()),
                           Count(encoded.tokens.size()), Saved(encoded.forest.size(), encoded.tokens.size()),
                           Count(encoded.unknown.size()), SegmentLabel(run_, encoded.segment), Worst(encoded, worst)));
  if (!tokens) return page.Take();
  page.Line(2, fmt::format("{:>6} {:>6} {:>10} {:>10}  token", "id", "nodes", "total", "self"), Ink::kDim);
  for (size_t t = 0; t < encoded.tokens.size(); ++t) {
    const uint32_t id = encoded.tokens.ids[t];
    const size_t indent = std::min<size_t>(encoded.tokens.depths[t] * kIndent, page.width() / 4);
    page.Line(2, fmt::format("{:>6} {:>6} {:>10} {:>10}  {:{}}{}", id, vocabulary_.vocabulary.node_count(id),
                             Duration(encoded.attributes[t].total), Duration(encoded.attributes[t].self), "", indent,
                             FragmentName(vocabulary_.vocabulary, id, kShownNodes)));
    if (encoded.attributes[t].worst.known()) page.Line(40, "worst " + Worst(encoded, t), Ink::kDim);
  }
  return page.Take();
}

std::string ForestText(const tpe::Vocabulary& vocabulary, const ReadSegment& segment, const tpe::Forest& forest,
                       const TextOptions& options) {
  Page page(options);
  std::string head = Member(segment, "kind");
  if (const std::string rank = Member(segment, "rank"); !rank.empty()) head += ", rank " + rank;
  if (const std::string step = Member(segment, "step"); !step.empty())
    head += ", step " + step + " " + Member(segment, "step_kind");
  page.Head(fmt::format("{}: {}, {}", head.empty() ? "segment" : head, Count(forest.symbols.size(), "node"),
                        Count(segment.ids.size(), "token")));
  const std::map<uint32_t, uint64_t> hashes = HashesOf(segment);
  // Where tokens begin.
  size_t token = 0;
  size_t next = 0;
  for (uint32_t node = 0; node < forest.symbols.size(); ++node) {
    const bool first = node == next && token < segment.ids.size();
    if (first) next += vocabulary.node_count(segment.ids[token++]);
    const size_t indent = std::min<size_t>(size_t{forest.depths[node]} * kIndent, page.width() / 2);
    page.Line(0, (first ? "+" : " ") + std::string(indent + 1, ' ') +
                     NodeName(vocabulary, forest.symbols[node], hashes, node));
  }
  return page.Take();
}

std::string ForestJson(const tpe::Vocabulary& vocabulary, const ReadSegment& segment, const tpe::Forest& forest) {
  const std::map<uint32_t, uint64_t> hashes = HashesOf(segment);
  std::map<std::string, uint32_t> rows;
  Json symbols = Json::array();
  std::vector<uint32_t> column;
  for (uint32_t node = 0; node < forest.symbols.size(); ++node) {
    const uint32_t id = forest.symbols[node];
    std::string name(vocabulary.name(id));
    const bool unknown = vocabulary.kind(id) == tpe::EntryKind::kUnknown;
    if (unknown) {
      const auto hash = hashes.find(node);
      name = hash == hashes.end() ? std::string() : HexText(hash->second);
    }
    const std::string& layer = vocabulary.class_name(vocabulary.class_of(id));
    const auto [it, fresh] =
        rows.try_emplace(layer + (unknown ? "?" : " ") + name, static_cast<uint32_t>(symbols.size()));
    if (fresh) {
      Json symbol = {{"layer", layer}};
      symbol[unknown ? "unknown" : "name"] = name;
      symbols.push_back(std::move(symbol));
    }
    column.push_back(it->second);
  }
  Json out = segment.label;
  out["symbols"] = std::move(symbols);
  out["symbol"] = column;
  out["depth"] = forest.depths;
  return out.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace teller::report
