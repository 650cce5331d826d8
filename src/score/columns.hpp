#pragma once

#include <map>
#include <string>
#include <vector>

#include "score/table.hpp"

namespace teller::score {

/// A figure as people see it.
struct Column {
  const char* title;
  const char* figure;
};

/// A set of columns that fits on a line.
struct ColumnSet {
  const char* title;
  std::vector<Column> columns;
};
/// Sets in which the figures of all cases are shown, method by method.
const std::vector<ColumnSet>& ColumnSets();
/// The few that are shown for every group.
const std::vector<Column>& GroupColumns();

/// "x1.1-1.5 7, below x1.1 3", most frequent first.
std::string CountsText(const std::map<std::string, size_t>& counts);

/// "0.93", "-" when absent; durations and bytes with their unit.
std::string ValueText(const Figure& figure);
/// "0.88-0.97"; empty when there is no interval.
std::string IntervalText(const Figure& figure);

/// "0.93" for 93 of 100; "-" of none.
std::string ShareText(size_t part, size_t whole);

}  // namespace teller::score
