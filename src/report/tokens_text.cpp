#include "report/tokens_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/chunks.hpp"
#include "report/printable.hpp"
#include "report/summary.hpp"
#include "report/token_names.hpp"
#include "report/tokens_json.hpp"
#include "report/units.hpp"

namespace teller::report {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kIndent = 2;
constexpr size_t kShownNodes = 6;   // of a token on one line
constexpr size_t kNameBytes = 200;  // of a worst constituent
constexpr size_t kLinesAtOnce = 256;

std::string SegmentLabel(const engine::Run& run, const encode::Segment& segment) {
  std::string out = ProcessLabel(run.store, segment.process);
  if (!segment.step.valid()) return out + ", " + std::string(encode::Name(segment.kind));
  const trace::Step& step = run.trees.steps[segment.step.value()];
  return out + fmt::format(", step {} {}", step.index, trace::Name(step.kind));
}

double Saved(size_t nodes, size_t tokens) {
  return nodes == 0 ? 0 : 100 * (1 - static_cast<double>(tokens) / static_cast<double>(nodes));
}

/// The hashes of a segment's unknown nodes, asked for in the order of the nodes.
class HashOfNode {
 public:
  explicit HashOfNode(const std::vector<encode::UnknownNode>& unknown) : unknown_(unknown) {}
  /// 0 for a node that has none.
  uint64_t operator()(uint32_t node) {
    while (next_ < unknown_.size() && unknown_[next_].node < node) ++next_;
    return next_ < unknown_.size() && unknown_[next_].node == node ? unknown_[next_].name_hash : 0;
  }

 private:
  const std::vector<encode::UnknownNode>& unknown_;
  size_t next_ = 0;
};

std::string NodeName(const tpe::Vocabulary& vocabulary, uint32_t id, uint64_t hash) {
  std::string name = EntryName(vocabulary, id);
  if (vocabulary.kind(id) == tpe::EntryKind::kUnknown) name += " " + HexText(hash);
  return name;
}

/// Distinct symbols, numbered in the order of their first use.
class SymbolRows {
 public:
  explicit SymbolRows(const tpe::Vocabulary& vocabulary) : vocabulary_(vocabulary), known_(vocabulary.size(), kNone) {}
  /// Its row, and whether it is new. `hash` counts for unknown names only.
  std::pair<uint32_t, bool> RowOf(uint32_t id, uint64_t hash) {
    if (vocabulary_.kind(id) == tpe::EntryKind::kUnknown) {
      const auto [it, fresh] = unknown_.try_emplace(std::pair(id, hash), count_);
      if (fresh) ++count_;
      return {it->second, fresh};
    }
    const bool fresh = known_[id] == kNone;
    if (fresh) known_[id] = count_++;
    return {known_[id], fresh};
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  const tpe::Vocabulary& vocabulary_;
  std::vector<uint32_t> known_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> unknown_;
  uint32_t count_ = 0;
};

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
                     span.valid() ? Shortened(run_.store.name(span.value()), kNameBytes) : "structure");
}

std::string TokensText::Findings() const {
  std::string out = "verdict: " + std::string(trace::Name(diagnosis_->status));
  for (const trace::Finding& finding : diagnosis_->findings) {
    out += fmt::format("; {} {}", finding.id, trace::Name(finding.fault));
    if (finding.culprit.rank) out += fmt::format(" on rank {}", *finding.culprit.rank);
    if (!finding.culprit.op.empty()) out += ", " + Shortened(finding.culprit.op, kNameBytes);
  }
  return out;
}

std::string TokensText::Proofs(std::span<const engine::TokenEvidence> evidence) const {
  std::string out;
  for (const engine::TokenEvidence& found : evidence) {
    const trace::Finding& finding = diagnosis_->findings[found.finding];
    out += fmt::format("{}{} {} in token {} at {}", out.empty() ? "" : "; ", finding.id,
                       finding.evidence[found.evidence].id, found.token, found.offset);
  }
  return out;
}

std::string TokensText::Head() const {
  Page page(options_);
  if (diagnosis_ != nullptr) page.Paragraph(0, Findings());
  page.Line(0, fmt::format("vocabulary {}: {} names, {} merges", vocabulary_.name,
                           Count(NameCount(vocabulary_.vocabulary)), Count(vocabulary_.vocabulary.merge_count())));
  page.Line(0,
            fmt::format("{:>9} {:>8} {:>7} {:>8}  segment, its worst constituent below", "nodes", "tokens", "saved",
                        "unknown"),
            Ink::kDim);
  return page.Take();
}

std::string TokensText::Tail(size_t shown) const {
  size_t all = 0;
  for (const trace::Finding& finding : diagnosis_->findings) all += finding.evidence.size();
  if (all <= shown) return {};
  Page page(options_);
  page.Paragraph(0, Count(all - shown, "other piece") +
                        " of evidence: log lines, statistics and spans that no token above holds (requests, what lies "
                        "outside of steps: --all); teller diagnose tells them");
  return page.Take();
}

base::Status TokensText::WriteSegment(const engine::EncodedSegment& encoded, bool tokens, const Sink& sink) const {
  Page page(options_);
  size_t worst = 0;
  for (size_t t = 0; t < encoded.attributes.size(); ++t) {
    if (encoded.attributes[t].worst.z > encoded.attributes[worst].worst.z) worst = t;
  }
  const std::string numbers =
      fmt::format("{:>9} {:>8} {:>6.1f}% {:>8}  ", Count(encoded.forest.size()), Count(encoded.tokens.size()),
                  Saved(encoded.forest.size(), encoded.tokens.size()), Count(encoded.unknown.size()));
  const std::string label = Printable(SegmentLabel(run_, encoded.segment));
  const bool fits = numbers.size() + Columns(label) <= page.width();
  page.Line(0, fits ? numbers + label : numbers);
  if (!fits) page.Paragraph(4, label);
  page.Paragraph(4, "worst: " + Worst(encoded, worst), Ink::kDim);
  for (const engine::Accusation& one : encoded.accusations)
    page.Line(4, fmt::format("accused by {}, score {:.2f}", diagnosis_->findings[one.finding].id, one.score));
  const std::span<const engine::TokenEvidence> evidence(encoded.evidence);
  if (!evidence.empty()) page.Paragraph(4, "proves: " + Proofs(evidence));
  if (!tokens) return sink(page.Take());
  page.Line(2, fmt::format("{:>6} {:>6} {:>10} {:>10}  token", "id", "nodes", "total", "self"), Ink::kDim);
  size_t next = 0;  // of the evidence
  Chunks out(sink);
  for (size_t t = 0; t < encoded.tokens.size() && out.ok(); ++t) {
    const uint32_t id = encoded.tokens.ids[t];
    const size_t indent = std::min<size_t>(encoded.tokens.depths[t] * kIndent, page.width() / 4);
    page.Line(2, fmt::format("{:>6} {:>6} {:>10} {:>10}  {:{}}{}", id, vocabulary_.vocabulary.node_count(id),
                             Duration(encoded.attributes[t].total), Duration(encoded.attributes[t].self), "", indent,
                             FragmentName(vocabulary_.vocabulary, id, kShownNodes)));
    if (encoded.attributes[t].worst.known()) page.Paragraph(40, "worst " + Worst(encoded, t), Ink::kDim);
    const size_t first = next;
    while (next < evidence.size() && evidence[next].token == t) ++next;
    if (first < next) page.Paragraph(40, "proves " + Proofs(evidence.subspan(first, next - first)));
    if ((t + 1) % kLinesAtOnce == 0) out.Add(page.Take());
  }
  out.Add(page.Take());
  return out.End();
}

base::Status WriteForestText(const tpe::Vocabulary& vocabulary, const ReadSegment& segment, const tpe::Forest& forest,
                             const TextOptions& options, const Sink& sink) {
  Chunks out(sink);
  Page page(options);
  std::string head = Member(segment, "kind");
  if (const std::string rank = Member(segment, "rank"); !rank.empty()) head += ", rank " + rank;
  if (const std::string step = Member(segment, "step"); !step.empty())
    head += ", step " + step + " " + Member(segment, "step_kind");
  page.Head(fmt::format("{}: {}, {}", head.empty() ? "segment" : head, Count(forest.symbols.size(), "node"),
                        Count(segment.ids.size(), "token")));
  HashOfNode hash(segment.unknown);
  // Where tokens begin.
  size_t token = 0;
  size_t next = 0;
  for (uint32_t node = 0; node < forest.symbols.size() && out.ok(); ++node) {
    const bool first = node == next && token < segment.ids.size();
    if (first) next += vocabulary.node_count(segment.ids[token++]);
    const size_t indent = std::min<size_t>(size_t{forest.depths[node]} * kIndent, page.width() / 2);
    page.Line(
        0, (first ? "+" : " ") + std::string(indent + 1, ' ') + NodeName(vocabulary, forest.symbols[node], hash(node)));
    if ((node + 1) % kLinesAtOnce == 0) out.Add(page.Take());
  }
  out.Add(page.Take());
  return out.End();
}

base::Status WriteForestJson(const tpe::Vocabulary& vocabulary, const ReadSegment& segment, const tpe::Forest& forest,
                             const Sink& sink) {
  const auto text = [](const Json& value) { return value.dump(-1, ' ', true, Json::error_handler_t::replace); };
  const auto n = static_cast<uint32_t>(forest.symbols.size());
  Chunks out(sink);
  std::string head = text(segment.label);
  head.pop_back();
  out.Add(head + ",\"symbols\":[");
  SymbolRows rows(vocabulary);
  HashOfNode hash(segment.unknown);
  for (uint32_t node = 0; node < n && out.ok(); ++node) {
    const uint32_t id = forest.symbols[node];
    const uint64_t name_hash = hash(node);
    const auto [row, fresh] = rows.RowOf(id, name_hash);
    if (!fresh) continue;
    Json symbol = {{"layer", vocabulary.class_name(vocabulary.class_of(id))}};
    if (vocabulary.kind(id) == tpe::EntryKind::kUnknown) {
      symbol["unknown"] = HexText(name_hash);
    } else {
      symbol["name"] = std::string(vocabulary.name(id));
    }
    out.Add((row == 0 ? "" : ",") + text(symbol));
  }
  out.Add("]");
  HashOfNode again(segment.unknown);
  AddColumn(out, "symbol", n, [&](size_t node) {
    return fmt::format_int(rows.RowOf(forest.symbols[node], again(static_cast<uint32_t>(node))).first).str();
  });
  AddColumn(out, "depth", n, [&](size_t node) { return fmt::format_int(forest.depths[node]).str(); });
  out.Add("}");
  return out.End();
}

}  // namespace teller::report
