#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/store.hpp"

// Messages with a known statement each, for tests of template mining: written after the documented line formats of
// serving engines, not taken from any log. A pattern is one logging statement; its holes are filled from a seeded
// generator.
namespace teller::logs {

struct Statement {
  trace::LogSource source;
  std::string_view pattern;  ///< {int} {float} {ms} {hex} {uuid} {ip} {path} {host} {model} {kernel} {text} {words} ...
  double weight = 1;         ///< how often it is written, against the others of its format
};

struct LabelledSet {
  trace::Store store;
  std::vector<size_t> truth;  ///< statement of each record
  size_t statements = 0;      ///< that occur
};

/// The set on which the miner's numbers were chosen: twelve formats.
const std::vector<Statement>& TuningStatements();
/// Other formats, looked at only to report how well the choice carries over.
const std::vector<Statement>& HeldOutStatements();

/// `lines` records, drawn by weight; every statement occurs when there is room. Same arguments, same set.
LabelledSet MakeLabelled(const std::vector<Statement>& statements, size_t lines, uint64_t seed);

/// Share of records whose group holds exactly the records of one statement.
/// Source: Zhu et al. 2019, "Tools and Benchmarks for Automated Log Parsing": grouping accuracy.
double GroupingAccuracy(const trace::Store& store, const std::vector<size_t>& truth);

}  // namespace teller::logs
