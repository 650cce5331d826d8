#include <algorithm>
#include <cstdlib>

#include "ingest/log/cursor.hpp"
#include "ingest/log/parsed_line.hpp"

namespace teller::ingest::log {

namespace {

/// "4:27", "1:02:03" in seconds; -1 for "?".
double ReadElapsed(Cursor& c) {
  double seconds = 0;
  int64_t part = 0;
  bool any = false;
  while (c.Number(1, 6, part)) {
    seconds = seconds * 60 + static_cast<double>(part);
    any = true;
    if (!c.Eat(':')) break;
  }
  return any ? seconds : -1;
}

double ReadDecimal(Cursor& c) {
  const std::string_view word = c.Word(".");
  char buffer[32] = {};
  const size_t n = std::min(word.size(), sizeof buffer - 1);
  std::copy_n(word.begin(), n, buffer);
  char* end = nullptr;
  const double value = std::strtod(buffer, &end);
  return end == buffer ? -1 : value;
}

}  // namespace

std::optional<ProgressBar> ParseProgressBar(std::string_view line) {
  // The counter "59/96 [" is what every bar has; before it stands a percentage and a | of the drawing.
  size_t open = line.find(" [");
  for (; open != std::string_view::npos; open = line.find(" [", open + 1)) {
    if (open == 0 || !IsDigit(line[open - 1])) continue;
    size_t digits = open;
    while (digits > 0 && (IsDigit(line[digits - 1]) || line[digits - 1] == '/')) --digits;
    Cursor c(line.substr(digits));
    ProgressBar bar;
    if (!c.Number(1, 15, bar.done) || !c.Eat('/') || !c.Number(1, 15, bar.total) || !c.Eat(" [")) continue;
    const std::string_view before = line.substr(0, digits);
    if (!Contains(before, "%") || !Contains(before, "|")) continue;
    bar.elapsed_s = ReadElapsed(c);
    std::string_view inside;
    if (!c.Until("]", inside) || !Contains(inside, "<")) continue;
    c.Eat(']');
    bar.length = digits + c.at();
    if (const size_t comma = inside.find(','); comma != std::string_view::npos) {
      Cursor rate(TrimLeft(inside.substr(comma + 1)));
      const double value = ReadDecimal(rate);
      const std::string_view text = TrimLeft(inside.substr(comma + 1));
      if (value > 0) bar.seconds_per_item = EndsWith(text, "it/s") || Contains(text, "/s") ? 1 / value : value;
    }
    return bar;
  }
  return std::nullopt;
}

}  // namespace teller::ingest::log
