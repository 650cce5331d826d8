#include "report/token_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace teller::report {

uint32_t NameCount(const tpe::Vocabulary& vocabulary) {
  return vocabulary.base_count() - vocabulary.class_count();
}

std::string EntryName(const tpe::Vocabulary& vocabulary, uint32_t id) {
  const std::string& layer = vocabulary.class_name(vocabulary.class_of(id));
  if (vocabulary.kind(id) == tpe::EntryKind::kUnknown) return layer + " (unknown)";
  return layer + " " + std::string(vocabulary.name(id));
}

std::string FragmentName(const tpe::Vocabulary& vocabulary, uint32_t id, size_t most) {
  std::vector<uint32_t> symbols;
  std::vector<uint32_t> depths;
  vocabulary.Expand(id, 0, symbols, depths);
  std::string out;
  const size_t shown = std::min(most, symbols.size());
  std::string layer;
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) {
      const bool down = depths[i] > depths[i - 1];
      if (!down) out.append(std::min<size_t>(depths[i - 1] - depths[i], 8), '^');
      out += down ? " > " : ", ";
    }
    // The layer is said where it changes.
    const std::string& now = vocabulary.class_name(vocabulary.class_of(symbols[i]));
    const std::string name = EntryName(vocabulary, symbols[i]);
    out += now == layer ? name.substr(now.size() + 1) : name;
    layer = now;
  }
  if (shown < symbols.size()) out += fmt::format(" ... {} more", symbols.size() - shown);
  return out;
}

}  // namespace teller::report
