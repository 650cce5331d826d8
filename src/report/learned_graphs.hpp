#pragma once

#include <string>
#include <vector>

#include "trace/store.hpp"

namespace teller::report {

/// The bytes of a file of learned launch sequences (docs/reference/teller.graphs-1.md), which ingest::ReadGraphs reads
/// back. Same sequences, same bytes. Bytes of names that are not UTF-8 become
/// U+FFFD, longer names are cut.
std::string GraphsToJsonLines(const trace::Store& store, const std::vector<trace::LearnedSequence>& sequences);

}  // namespace teller::report
