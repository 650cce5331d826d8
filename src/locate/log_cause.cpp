#include "locate/log_cause.hpp"

#include <algorithm>
#include <tuple>

#include "locate/log_facts.hpp"
#include "locate/log_incident.hpp"
#include "locate/log_signal.hpp"

namespace teller::locate {

LogCauses FindLogCauses(const trace::Store& store) {
  LogCauses out;
  std::vector<Signal> signals;
  for (size_t row = 0; row < store.logs.size(); ++row) {
    if (auto signal = ReadSignal(store.logs[row], row)) signals.push_back(std::move(*signal));
  }
  const LogFacts facts = GatherFacts(store, signals);
  std::sort(signals.begin(), signals.end(),
            [&](const Signal& a, const Signal& b) { return facts.place[a.row] < facts.place[b.row]; });
  FindIncidents(store, facts, signals, out);
  FindFloods(store, facts, signals, out);
  FindRates(store, facts, out);
  FindSlowLoads(store, facts, out);
  NoteLookAlikes(store, facts, out);
  std::stable_sort(out.findings.begin(), out.findings.end(), [](const trace::Finding& a, const trace::Finding& b) {
    return std::tuple(-a.score, a.onset) < std::tuple(-b.score, b.onset);
  });
  return out;
}

}  // namespace teller::locate
