#pragma once

#include <string>
#include <vector>

#include "report/page.hpp"

namespace teller::report {

/// A table whose columns are as wide as what stands in them: the first one flush left, the others flush right. Its
/// lines are never cut: no column is lost on a narrow terminal. Threads: confined.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  /// As many cells as the head has.
  void Row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// The head dimmed, then the rows.
  void AddTo(Page& page) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace teller::report
