#pragma once

#include "trace/store.hpp"

namespace teller::ingest {

/// Joins Prometheus files that hold one scrape each of the same target: their samples become those of one series for
/// each name and labels, in order of time, with the file's place in that order as the scrape. The series belong to the
/// first file. Which files are of one target: docs/reference/prometheus.md. Series that nothing has samples of any more
/// are taken out of Store::counter_series, so that counter rows change. Call after all files were read.
/// Diagnostics: prometheus.joined.
void JoinScrapes(trace::Store& store);

}  // namespace teller::ingest
