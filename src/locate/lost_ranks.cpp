#include "locate/lost_ranks.hpp"

#include <algorithm>

namespace teller::locate {

void DoubtWhatLostRanksMayExplain(const trace::Store& store, std::vector<trace::Finding>& findings) {
  constexpr double kDoubt = 0.5;
  std::string lost;
  for (const base::Diagnostic& d : store.diagnostics.All()) {
    if (d.kind->severity < base::Severity::kDataLoss || !d.file.valid()) continue;
    const trace::File& file = store.files[d.file.value()];
    if ((file.kind == "kineto" || file.kind == "nsys") && lost.empty()) lost = file.path;
  }
  if (lost.empty()) return;
  for (trace::Finding& finding : findings) {
    if (finding.view != "horizontal") continue;
    finding.score *= kDoubt;
    finding.explanation += " But part of " + lost + " was lost, and what is missing there may be the cause.";
  }
}

}  // namespace teller::locate
