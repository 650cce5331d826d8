#include "report/table.hpp"

#include <algorithm>
#include <numeric>

#include "report/printable.hpp"

namespace teller::report {

void Table::AddTo(Page& page) const {
  const size_t columns = rows_.front().size();
  std::vector<std::vector<std::string>> shown = rows_;
  std::vector<size_t> widths(columns, 0);
  for (std::vector<std::string>& row : shown) {
    row.resize(columns);
    for (size_t c = 0; c < columns; ++c) {
      row[c] = Printable(row[c]);
      widths[c] = std::max(widths[c], Columns(row[c]));
    }
  }
  const size_t wide = std::accumulate(widths.begin(), widths.end(), 2 * (columns - 1));
  const size_t gap = wide <= page.width() ? 2 : 1;
  for (size_t r = 0; r < shown.size(); ++r) {
    std::string line;
    for (size_t c = 0; c < columns; ++c) {
      const std::string blank(widths[c] - Columns(shown[r][c]), ' ');
      if (c > 0) line.append(gap, ' ');
      line += c == 0 ? shown[r][c] + blank : blank + shown[r][c];
    }
    page.Raw(page.Inked(r == 0 ? Ink::kDim : Ink::kPlain, line));
  }
}

}  // namespace teller::report
