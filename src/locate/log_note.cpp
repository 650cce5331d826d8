#include <map>

#include "locate/log_incident.hpp"
#include "locate/log_text.hpp"

namespace teller::locate {

using trace::LogRecord;
using trace::LogSource;

void NoteLookAlikes(const trace::Store& store, const LogFacts& facts, LogCauses& out) {
  // The profiler's stop and export hold up serving: it is the observer's doing, never the service's fault.
  std::map<uint32_t, trace::Nanos> stopping;
  for (const size_t row : facts.order) {
    const LogRecord& r = store.logs[row];
    const uint32_t file = r.file.value();
    if (Begins(r.message, "Stopping profiler") || Begins(r.message, "Stop profiling")) {
      stopping.emplace(file, r.at);
    } else if (const auto it = stopping.find(file); it != stopping.end() && (Begins(r.message, "Profiler stopped.") ||
                                                                             Begins(r.message, "Profiling done"))) {
      out.notes.push_back(
          {"The profiler was stopped and exported its trace; serving stands still meanwhile.", it->second, r.at, true});
      stopping.erase(it);
    }
  }
  // A log that ends in a progress bar was cut off while loading or capturing: ended from outside, not stuck by itself.
  std::map<uint32_t, size_t> last;
  for (size_t row = 0; row < store.logs.size(); ++row) {
    const LogRecord& r = store.logs[row];
    const bool leftover = Has(r.message, "resource_tracker: ");
    if (!leftover) last[r.file.value()] = row;
  }
  for (const auto& [file, row] : last) {
    const LogRecord& r = store.logs[row];
    if (r.source != LogSource::kProgress) continue;
    out.notes.push_back({"The log ends in the middle of \"" + Shorten(r.message, 100) +
                             "\" without an error: slow or ended from outside, not a crash.",
                         r.at, r.at});
  }
}

}  // namespace teller::locate
