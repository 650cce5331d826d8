// Learned launch sequences. The form is this project's own (docs/reference/teller.graphs-1.md): JSON lines, the last of
// which holds the CRC-32 of all bytes before it.
#include "ingest/learned_graphs/learned_graphs.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <optional>
#include <utility>

#include "base/checksum.hpp"
#include "ingest/common/text.hpp"

namespace teller::ingest {

namespace {

namespace sj = simdjson::dom;
using base::Code;
using base::Error;
using trace::GraphSource;
using trace::LearnedLaunch;
using trace::LearnedSequence;
using trace::SpanKind;
using trace::StringId;

constexpr std::string_view kSchemaKey = "{\"schema\":\"";
constexpr std::string_view kSumKey = "{\"crc32\":";
constexpr std::string_view kAnySchema = "teller.graphs/";
constexpr std::string_view kAgain = "; learn it again with \"teller graphs learn\"";
constexpr size_t kFields = 5;  // numbers of one launch
constexpr std::array<SpanKind, 3> kKinds = {SpanKind::kKernel, SpanKind::kCopy, SpanKind::kMemset};

Error Bad(uint64_t line, std::string_view what) {
  return {.code = Code::kBadFormat,
          .message = std::string(what) + std::string(kAgain),
          .path = {},
          .at = "line " + std::to_string(line)};
}

base::Status ReadAll(base::ByteSource& source, std::string& text) {
  constexpr size_t kChunk = 1u << 20;
  while (true) {
    const size_t had = text.size();
    text.resize(had + kChunk);
    const auto got = source.Read(text.data() + had, kChunk);
    if (!got) return got.error();
    text.resize(had + *got);
    if (text.size() > kMaxGraphsBytes) {
      return Error{Code::kLimit, fmt::format("learned graphs of more than {} MiB are not read", kMaxGraphsBytes >> 20)};
    }
    if (*got < kChunk) break;
  }
  if (!source.damage().empty()) return Error{Code::kBadFormat, std::string(source.damage()) + std::string(kAgain)};
  return {};
}

/// A file whose sum is right, line by line.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  std::optional<std::string_view> Next() {
    const size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    ++number_;
    return line;
  }
  uint64_t number() const { return number_; }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  uint64_t number_ = 0;
};

class Reader {
 public:
  Reader(std::string_view text, trace::FileRow file, trace::Store& store)
      : text_(text), lines_(text), file_(file), store_(store) {}

  base::Status Read() {
    TELLER_TRY(Version());
    TELLER_TRY(Sum());
    TELLER_TRY(Head());
    for (uint64_t i = 0; i < strings_; ++i) TELLER_TRY(String());
    for (uint64_t i = 0; i < sequences_; ++i) TELLER_TRY(Sequence());
    lines_.Next();  // the sum
    if (!lines_.rest().empty()) return Bad(lines_.number(), "has lines too many");
    trace::File& row = store_.files[file_.value()];
    row.bytes = text_.size();
    row.records_read = row.metadata = out_.size();
    for (LearnedSequence& sequence : out_) store_.learned_graphs.push_back(std::move(sequence));
    return {};
  }

 private:
  /// Before the sum: what another version sums up, it alone knows.
  base::Status Version() const {
    std::string_view schema = text_.substr(0, text_.find('\n'));
    schema = schema.substr(schema.size() < kSchemaKey.size() ? schema.size() : kSchemaKey.size());
    schema = schema.substr(0, schema.find('"'));
    if (schema == kGraphsSchema) return {};
    return Error{.code = Code::kUnsupported,
                 .message = fmt::format("learned graphs of the form {}, but only {} is known{}", Snippet(schema),
                                        kGraphsSchema, kAgain),
                 .path = {},
                 .at = "line 1"};
  }

  base::Status Sum() const {
    const std::string_view lines = text_.ends_with('\n') ? text_.substr(0, text_.size() - 1) : std::string_view();
    const size_t start = lines.rfind('\n') + 1;  // 0 when there is but one line
    const std::string_view last = lines.substr(start);
    if (start == 0 || !last.starts_with(kSumKey)) {
      return Error{Code::kBadFormat, "cut off: the sum at its end is missing" + std::string(kAgain)};
    }
    if (last == GraphsSumLine(text_.substr(0, start))) return {};
    return Error{Code::kBadFormat, "damaged: its sum is not the one at its end" + std::string(kAgain)};
  }

  base::Status Head() {
    sj::object head;
    TELLER_TRY(Object(head));
    if (!Number(head, "strings", kMaxGraphsStrings, strings_) ||
        !Number(head, "sequences", trace::kMaxLearnedSequences, sequences_)) {
      return Bad(1, "the numbers of strings and sequences are missing or larger than is believed");
    }
    ids_.emplace_back();
    return {};
  }

  base::Status Object(sj::object& object) {
    const auto line = lines_.Next();
    if (!line) return Bad(lines_.number() + 1, "has lines too few");
    if (parser_.parse(line->data(), line->size()).get(object) == simdjson::SUCCESS) return {};
    return Bad(lines_.number(), "is no JSON object");
  }

  base::Status String() {
    const auto line = lines_.Next();
    if (!line) return Bad(lines_.number() + 1, "has lines too few");
    std::string_view text;
    if (parser_.parse(line->data(), line->size()).get(text) != simdjson::SUCCESS)
      return Bad(lines_.number(), "is no JSON string");
    if (text.empty() || text.size() > kMaxGraphsString)
      return Bad(lines_.number(), "a name is empty or longer than 4096 bytes");
    ids_.push_back(store_.strings.Intern(text));
    return {};
  }

  base::Status Sequence() {
    sj::object object;
    TELLER_TRY(Object(object));
    LearnedSequence sequence{.file = file_};
    std::string_view source;
    uint64_t model = 0;
    sj::array numbers;
    const bool known =
        object["source"].get(source) == simdjson::SUCCESS && object["whole"].get(sequence.whole) == simdjson::SUCCESS &&
        object["joined"].get(sequence.joined) == simdjson::SUCCESS &&
        object["batch"].get(sequence.batch) == simdjson::SUCCESS && sequence.batch >= -1 &&
        Number(object, "model", trace::kMaxLearnedSequences, model) &&
        object["launches"].get(numbers) == simdjson::SUCCESS && (source == "capture" || source == "eager");
    if (!known) return Bad(lines_.number(), "is no sequence of launches");
    sequence.model = static_cast<uint32_t>(model);
    sequence.source = source == "capture" ? GraphSource::kCapture : GraphSource::kEager;
    TELLER_TRY(Launches(numbers, sequence));
    out_.push_back(std::move(sequence));
    return {};
  }

  base::Status Launches(sj::array numbers, LearnedSequence& sequence) {
    std::array<uint64_t, kFields> fields{};
    size_t filled = 0;
    for (const sj::element element : numbers) {
      if (element.get(fields[filled]) != simdjson::SUCCESS ||
          fields[filled] >= (filled == 0 ? kKinds.size() : ids_.size()))
        return Bad(lines_.number(), "a launch names a kind or a string that is not there");
      if (++filled < kFields) continue;
      filled = 0;
      if (launches_ == trace::kMaxLearnedLaunches || sequence.launches.size() == trace::kMaxSequenceLaunches)
        return Bad(lines_.number(), "has more launches than are believed");
      ++launches_;
      sequence.launches.push_back({.kind = kKinds[fields[0]],
                                   .family = ids_[fields[1]],
                                   .stem = ids_[fields[2]],
                                   .module = ids_[fields[3]],
                                   .op = ids_[fields[4]]});
    }
    return filled == 0 ? base::Status() : Bad(lines_.number(), "ends in the middle of a launch");
  }

  static bool Number(const sj::object& object, std::string_view key, uint64_t most, uint64_t& out) {
    return object[key].get(out) == simdjson::SUCCESS && out <= most;
  }

  std::string_view text_;
  Lines lines_;
  trace::FileRow file_;
  trace::Store& store_;
  sj::parser parser_;
  std::vector<StringId> ids_;  // by number in the file; 0 = none
  uint64_t strings_ = 0;
  uint64_t sequences_ = 0;
  size_t launches_ = 0;
  std::vector<LearnedSequence> out_;
};

}  // namespace

std::string GraphsSumLine(std::string_view bytes) {
  return fmt::format("{{\"crc32\":\"{:08x}\"}}", base::Crc32(bytes));
}

bool LooksLikeGraphs(std::string_view head) {
  return head.starts_with(kSchemaKey) && head.substr(kSchemaKey.size()).starts_with(kAnySchema);
}

base::Status ReadGraphs(base::ByteSource& source, trace::FileRow file, trace::Store& store, const base::Limits&) {
  std::string text;
  TELLER_TRY(ReadAll(source, text));
  return Reader(text, file, store).Read();
}

}  // namespace teller::ingest
