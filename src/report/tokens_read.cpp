#include "report/tokens_read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <utility>

namespace teller::report {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kSchema = "teller.tokens/1";
constexpr std::string_view kSchemaName = "teller.tokens/";
/// What is written is five deep.
constexpr size_t kMaxDepth = 8;
constexpr std::array<std::string_view, 9> kLabels = {"kind",      "process",  "rank",   "engine", "step",
                                                     "step_kind", "begin_ns", "end_ns", "nodes"};

std::optional<uint64_t> Hex(std::string_view text) {
  uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

/// A list or object that is being read.
enum class In : uint8_t { kRoot, kVocabulary, kSegments, kSegment, kId, kDepth, kUnknown, kNode, kHash, kOther };

/// Takes the events of a JSON parser and keeps what decoding needs; says no to the first thing that is wrong.
class TokensReader : public nlohmann::json_sax<Json> {
 public:
  explicit TokensReader(const std::string& path) : path_(path) {}

  base::Result<ReadTokens> Take() {
    if (error_) return std::move(*error_);
    if (!schema_) return Bad("no tokens (schema teller.tokens/1)");
    if (!fingerprint_ || !segments_)
      return Bad("tokens without a list of segments or a vocabulary that has a fingerprint");
    return std::move(out_);
  }

  bool null() override { return Other(nullptr); }
  bool boolean(bool value) override { return Other(value); }
  bool number_integer(int64_t value) override { return Other(value); }
  bool number_float(double value, const std::string&) override { return Other(value); }
  bool binary(Json::binary_t&) override { return Other(nullptr); }
  bool number_unsigned(uint64_t value) override {
    if (open_.empty()) return Other(value);
    switch (open_.back()) {
      case In::kId: return Number(value, out_.segments.back().ids);
      case In::kDepth: return Number(value, out_.segments.back().depths);
      case In::kNode: return Number(value, nodes_);
      case In::kSegment:
        if (key_ == "nodes") {
          out_.segments.back().nodes = value;
          have_.nodes = true;
        }
        if (key_ == "tokens") tokens_ = value;
        return Other(value);
      default: return Other(value);
    }
  }

  bool string(std::string& value) override {
    if (open_.empty()) return Other(value);
    if (open_.back() == In::kHash) {
      const auto hash = Hex(value);
      if (!hash) return Fail(Place() + "a hash of \"unknown\" is no hexadecimal number");
      hashes_.push_back(*hash);
      return true;
    }
    if (open_.back() == In::kRoot && key_ == "schema") return Schema(value);
    if (open_.back() == In::kVocabulary && key_ == "name") out_.vocabulary = value;
    if (open_.back() == In::kVocabulary && key_ == "fingerprint") {
      const auto fingerprint = Hex(value);
      if (!fingerprint) return Fail("the vocabulary's fingerprint is no hexadecimal number");
      out_.fingerprint = *fingerprint;
      fingerprint_ = true;
    }
    return Other(std::move(value));
  }

  bool key(std::string& value) override {
    if (!keys_.back().insert(value).second) return Fail(Place() + "a member occurs twice: \"" + value + "\"");
    key_ = std::move(value);
    return true;
  }
  bool start_object(size_t) override {
    if (!Open(false)) return false;
    keys_.emplace_back();
    return true;
  }
  bool start_array(size_t) override { return Open(true); }
  bool end_array() override { return Close(); }
  bool end_object() override {
    keys_.pop_back();
    return Close();
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    if (open_.empty() && !schema_) return Fail("no JSON object");
    Fail(open_.empty() ? "something follows the JSON object" : "no JSON from here on");
    error_->at = fmt::format("byte {}", position);
    return false;
  }

 private:
  base::Error Bad(std::string what, base::Code code = base::Code::kBadFormat) const {
    return {.code = code,
            .message = std::move(what) + "; teller tpe encode --json writes what is read here",
            .path = path_};
  }
  bool Fail(std::string what, base::Code code = base::Code::kBadFormat) {
    if (!error_) error_ = Bad(std::move(what), code);
    return false;
  }
  /// The segment that is being read, or that would have come next.
  std::string Place() const {
    if (!segments_) return {};
    const bool inside = std::find(open_.begin(), open_.end(), In::kSegment) != open_.end();
    return fmt::format("segment {}: ", out_.segments.size() - (inside ? 1 : 0));
  }
  bool NoColumns() { return Fail(Place() + "\"id\" and \"depth\" are no columns of numbers of one length"); }
  bool NoUnknown() { return Fail(Place() + "\"unknown\" has no columns \"node\" and \"hash\" of one length"); }

  bool Schema(const std::string& value) {
    if (!value.starts_with(kSchemaName)) return Fail("no tokens (schema teller.tokens/1)");
    if (value != kSchema) return Fail("another version of teller.tokens", base::Code::kUnsupported);
    schema_ = true;
    return true;
  }

  bool Number(uint64_t value, std::vector<uint32_t>& column) {
    if (value > std::numeric_limits<uint32_t>::max()) return Other(value);
    column.push_back(static_cast<uint32_t>(value));
    return true;
  }

  /// A value that no column takes: wrong inside of one, else a label or of no interest.
  template <class Value>
  bool Other(Value&& value) {
    if (open_.empty()) return Fail("no JSON object");
    switch (open_.back()) {
      case In::kId:
      case In::kDepth: return NoColumns();
      case In::kNode:
      case In::kHash: return NoUnknown();
      case In::kSegments: return Fail(Place() + "no object");
      case In::kSegment:
        if (std::find(kLabels.begin(), kLabels.end(), key_) != kLabels.end())
          out_.segments.back().label[key_] = std::forward<Value>(value);
        return true;
      default: return true;
    }
  }

  bool Open(bool array) {
    if (open_.empty()) {
      if (array) return Fail("no JSON object");
      open_.push_back(In::kRoot);
      return true;
    }
    if (open_.size() == kMaxDepth) return Fail(fmt::format("lists and objects more than {} deep", kMaxDepth));
    switch (open_.back()) {
      case In::kId:
      case In::kDepth: return NoColumns();
      case In::kNode:
      case In::kHash: return NoUnknown();
      case In::kSegments:
        if (array) return Fail(Place() + "no object");
        out_.segments.emplace_back();
        have_ = {};
        nodes_.clear();
        hashes_.clear();
        break;
      default: break;
    }
    open_.push_back(Inside(array));
    return true;
  }

  /// What the list or object is that opens now.
  In Inside(bool array) {
    switch (open_.back()) {
      case In::kRoot:
        if (key_ == "vocabulary" && !array) return In::kVocabulary;
        if (key_ != "segments" || !array) return In::kOther;
        segments_ = true;
        return In::kSegments;
      case In::kSegments: return In::kSegment;
      case In::kSegment:
        if (key_ == "id" && array) return Column(In::kId, have_.id);
        if (key_ == "depth" && array) return Column(In::kDepth, have_.depth);
        if (key_ != "unknown" || array) return In::kOther;
        return In::kUnknown;
      case In::kUnknown:
        if (key_ == "node" && array) return Column(In::kNode, have_.node);
        if (key_ == "hash" && array) return Column(In::kHash, have_.hash);
        return In::kOther;
      default: return In::kOther;
    }
  }
  static In Column(In in, bool& have) {
    have = true;
    return in;
  }

  bool Close() {
    if (open_.back() == In::kSegment && !EndSegment()) return false;
    open_.pop_back();
    return true;
  }

  bool EndSegment() {
    ReadSegment& segment = out_.segments.back();
    if (!have_.id || !have_.depth || segment.ids.size() != segment.depths.size()) return NoColumns();
    if (tokens_ && *tokens_ != segment.ids.size())
      return Fail(Place() + fmt::format("\"tokens\" is {}, but there are {}", *tokens_, segment.ids.size()));
    tokens_.reset();
    if (!have_.nodes) return Fail(Place() + "\"nodes\" is no number");
    if (!have_.node || !have_.hash || nodes_.size() != hashes_.size()) return NoUnknown();
    segment.unknown.reserve(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) segment.unknown.push_back({nodes_[i], hashes_[i]});
    return true;
  }

  const std::string& path_;
  std::optional<base::Error> error_;
  ReadTokens out_;
  bool schema_ = false, fingerprint_ = false, segments_ = false;
  std::vector<In> open_;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
  std::string key_;
  std::optional<uint64_t> tokens_;  // stated by the segment that is being read
  // Of the segment that is being read.
  struct {
    bool id = false, depth = false, nodes = false, node = false, hash = false;
  } have_;
  std::vector<uint32_t> nodes_;
  std::vector<uint64_t> hashes_;
};

/// Nodes of a forest with the tokens that they belong to, one after the other.
class TokenOfNode {
 public:
  TokenOfNode(const tpe::Vocabulary& vocabulary, const std::vector<uint32_t>& ids)
      : vocabulary_(vocabulary), ids_(ids) {}
  /// `node` never falls.
  size_t operator()(uint64_t node) {
    while (node >= end_) end_ += vocabulary_.node_count(ids_[next_++]);
    return next_ - 1;
  }

 private:
  const tpe::Vocabulary& vocabulary_;
  const std::vector<uint32_t>& ids_;
  uint64_t end_ = 0;
  size_t next_ = 0;
};

base::Error Inconsistent(std::string what, std::string at = {}) {
  return {.code = base::Code::kBadFormat, .message = std::move(what), .path = {}, .at = std::move(at)};
}

base::Status CheckUnknown(const tpe::Vocabulary& vocabulary, const ReadSegment& segment, const tpe::Forest& forest) {
  const auto& unknown = segment.unknown;
  for (size_t i = 0; i < unknown.size(); ++i) {
    if (unknown[i].node >= forest.symbols.size())
      return Inconsistent(
          fmt::format("\"unknown\" names node {}, expected less than {}", unknown[i].node, forest.symbols.size()));
    if (i > 0 && unknown[i].node <= unknown[i - 1].node)
      return Inconsistent(fmt::format("\"unknown\" names node {} after node {}, expected ascending nodes",
                                      unknown[i].node, unknown[i - 1].node));
  }
  TokenOfNode token(vocabulary, segment.ids);
  size_t next = 0;
  for (uint32_t node = 0; node < forest.symbols.size(); ++node) {
    const bool is_unknown = vocabulary.kind(forest.symbols[node]) == tpe::EntryKind::kUnknown;
    const bool has_hash = next < unknown.size() && unknown[next].node == node;
    if (has_hash) ++next;
    if (is_unknown == has_hash) continue;
    return Inconsistent(
        is_unknown
            ? fmt::format("node {} is one whose name the vocabulary lacks, but \"unknown\" has no hash for it", node)
            : fmt::format("\"unknown\" has a hash for node {}, whose name the vocabulary knows", node),
        fmt::format("token {}", token(node)));
  }
  return {};
}

}  // namespace

base::Result<ReadTokens> TokensFromJson(std::string_view text, const std::string& path) {
  TokensReader reader(path);
  // The parser takes a zero byte for the end of its input.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos)
    return base::Error{.code = base::Code::kBadFormat,
                       .message = "no JSON from here on; teller tpe encode --json writes what is read here",
                       .path = path,
                       .at = fmt::format("byte {}", zero)};
  Json::sax_parse(text, &reader);
  return reader.Take();
}

base::Result<tpe::Forest> DecodeSegment(const tpe::Vocabulary& vocabulary, const ReadSegment& segment,
                                        uint64_t max_nodes) {
  auto forest = tpe::Decode(vocabulary, segment.ids, segment.depths, max_nodes);
  if (!forest) return forest.error();
  if (segment.nodes != forest->symbols.size())
    return Inconsistent(
        fmt::format("\"nodes\" is {}, but its tokens stand for {}", segment.nodes, forest->symbols.size()));
  TELLER_TRY(CheckUnknown(vocabulary, segment, *forest));
  return forest;
}

}  // namespace teller::report
