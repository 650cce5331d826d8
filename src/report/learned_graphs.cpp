#include "report/learned_graphs.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "ingest/learned_graphs/learned_graphs.hpp"
#include "report/printable.hpp"

namespace teller::report {

namespace {

using trace::GraphSource;
using trace::LearnedLaunch;
using trace::LearnedSequence;
using trace::SpanKind;
using trace::StringId;

/// Numbers strings from 1 in the order of first use; 0 = none.
class Numbering {
 public:
  explicit Numbering(const trace::Store& store) : store_(store) {}

  uint32_t Of(StringId id) {
    if (store_.text(id).empty()) return 0;
    const auto [it, fresh] = numbers_.try_emplace(id, static_cast<uint32_t>(order_.size() + 1));
    if (fresh) order_.push_back(id);
    return it->second;
  }
  const std::vector<StringId>& order() const { return order_; }

 private:
  const trace::Store& store_;
  std::unordered_map<StringId, uint32_t> numbers_;
  std::vector<StringId> order_;
};

/// A JSON string, cut where a reader would not believe it.
std::string Quoted(std::string_view text) {
  std::string clean = ValidUtf8(text);
  if (clean.size() > ingest::kMaxGraphsString) {
    size_t end = ingest::kMaxGraphsString;
    while (end > 0 && (static_cast<unsigned char>(clean[end]) & 0xC0) == 0x80) --end;  // not inside a character
    clean.resize(end);
  }
  return nlohmann::json(clean).dump(-1, ' ', true);
}

int NumberOf(SpanKind kind) {
  if (kind == SpanKind::kCopy) return 1;
  return kind == SpanKind::kMemset ? 2 : 0;
}

std::string LineOf(const LearnedSequence& sequence, Numbering& numbering) {
  std::string line = fmt::format(R"({{"source":"{}","whole":{},"joined":{},"batch":{},"model":{},"launches":[)",
                                 sequence.source == GraphSource::kCapture ? "capture" : "eager", sequence.whole,
                                 sequence.joined, sequence.batch, sequence.model);
  for (const LearnedLaunch& launch : sequence.launches) {
    if (line.back() != '[') line += ',';
    line += std::to_string(NumberOf(launch.kind));
    for (const StringId id : {launch.family, launch.stem, launch.module, launch.op})
      line += "," + std::to_string(numbering.Of(id));
  }
  return line + "]}\n";
}

}  // namespace

std::string GraphsToJsonLines(const trace::Store& store, const std::vector<LearnedSequence>& sequences) {
  Numbering numbering(store);
  std::string lines;
  for (const LearnedSequence& sequence : sequences) lines += LineOf(sequence, numbering);
  std::string out = fmt::format("{{\"schema\":\"{}\",\"strings\":{},\"sequences\":{}}}\n", ingest::kGraphsSchema,
                                numbering.order().size(), sequences.size());
  for (const StringId id : numbering.order()) out += Quoted(store.text(id)) + "\n";
  out += lines;
  return out + ingest::GraphsSumLine(out) + "\n";
}

}  // namespace teller::report
