#include "locate/lost_ranks.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace teller::locate {

namespace {

/// True where a trace, or a file or folder that may have been one, is lost or a part of it is.
bool LosesTrace(const trace::Store& store, const base::Diagnostic& diagnostic) {
  if (diagnostic.kind->severity < base::Severity::kDataLoss) return false;
  const std::string_view name = diagnostic.kind->code;
  if (!diagnostic.file.valid()) return name.starts_with("input.");
  const std::string& kind = store.files[diagnostic.file.value()].kind;
  if (kind == "other")
    return name.starts_with("input.damaged") || name == "input.empty_file" || name == "input.unreadable";
  return kind == "kineto" || kind == "nsys";
}

}  // namespace

void DoubtWhatLostRanksMayExplain(const trace::Store& store, std::vector<trace::Finding>& findings) {
  constexpr double kDoubt = 0.5;
  const auto& all = store.diagnostics.All();
  const auto lost = std::find_if(all.begin(), all.end(), [&](const auto& d) { return LosesTrace(store, d); });
  if (lost == all.end()) return;
  const std::string what =
      lost->file.valid() ? "part of " + store.files[lost->file.value()].path + " was" : "some input was";
  for (trace::Finding& finding : findings) {
    if (!finding.compares_ranks) continue;
    finding.score *= kDoubt;
    finding.explanation += " But " + what + " lost, and what is missing there may be the cause.";
  }
}

}  // namespace teller::locate
