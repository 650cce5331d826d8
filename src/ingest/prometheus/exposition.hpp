#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace teller::ingest::prometheus {

/// What a line of the text exposition format is.
enum class LineKind : uint8_t {
  kBlank,
  kSample,
  kType,   ///< "# TYPE name type"
  kOther,  ///< HELP, UNIT, or a comment that means nothing here
  kEnd,    ///< "# EOF": the end of one OpenMetrics scrape
  kMark,   ///< a comment that a recorder puts before each scrape: "# scrape 1795986612032631000", "# before", "# after"
  kBroken,
};

/// One line, in pieces of the line itself.
struct Line {
  LineKind kind = LineKind::kBlank;
  std::string_view name;       ///< of a sample, or the family that a TYPE line is about; quotes removed
  std::string_view labels;     ///< what stands between the braces, as written
  std::string_view type;       ///< "counter", "gauge", ...
  std::string_view timestamp;  ///< of a sample or mark; empty when it has none
  double value = 0;
};

using Labels = std::vector<std::pair<std::string, std::string>>;

/// Parses one line of the Prometheus text format 0.0.4 or of OpenMetrics 1.0 (also names in quotes inside the braces,
/// as Prometheus 3 writes them). Exemplars are passed over.
Line ParseLine(std::string_view text);

/// Takes the text between the braces apart; values with escapes resolved, order by key.
/// A quoted text without a value is the metric's name and goes to `quoted_name`.
/// False when it is malformed or has more than 256 labels.
bool ParseLabels(std::string_view text, Labels& out, std::string& quoted_name);

}  // namespace teller::ingest::prometheus
