#pragma once

#include <vector>

#include "locate/log_cause.hpp"
#include "locate/log_facts.hpp"
#include "locate/log_signal.hpp"

namespace teller::locate {

/// Groups what went wrong into incidents and names the first cause of each: errors, deaths, lost peers, stuck
/// collectives. Everything that follows from it is its echo. `signals` are ordered by time.
/// Tracebacks without consequences and what follows an orderly shutdown become notes.
void FindIncidents(const trace::Store& store, const LogFacts& facts, const std::vector<Signal>& signals,
                   LogCauses& out);

/// Sharpens a finding about a stuck collective by what each rank's watchdog said.
void ReadWatchdogs(const trace::Store& store, const LogFacts& facts, const std::vector<const Signal*>& timeouts,
                   trace::Finding& finding);

/// KV pressure, refused requests, compilation, failed KV transfers: many small events make one finding.
void FindFloods(const trace::Store& store, const LogFacts& facts, const std::vector<Signal>& signals, LogCauses& out);

/// Speculative decoding of which hardly any proposed token is accepted, by the engine's statistics lines.
void FindRates(const trace::Store& store, const LogFacts& facts, LogCauses& out);

/// Weights that one rank takes far longer to load than its peers, or that all of them read more slowly than any storage
/// that weights are kept on.
void FindSlowLoads(const trace::Store& store, const LogFacts& facts, LogCauses& out);

/// Look-alikes and observer effects that are worth a word: profiler export, a log that ends while loading.
void NoteLookAlikes(const trace::Store& store, const LogFacts& facts, LogCauses& out);

}  // namespace teller::locate
