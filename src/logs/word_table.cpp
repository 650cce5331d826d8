#include "logs/word_table.hpp"

#include <algorithm>
#include <array>

namespace teller::logs {

namespace {

bool IsLower(char c) {
  return c >= 'a' && c <= 'z';
}
bool IsUpper(char c) {
  return c >= 'A' && c <= 'Z';
}

/// Length of a placeholder ("<int>", "<*>") at `i`; 0 when there is none.
size_t PlaceholderAt(std::string_view text, size_t i) {
  static constexpr std::array<std::string_view, 8> kAll = {"<*>",    "<int>",  "<float>", "<hex>",
                                                           "<addr>", "<path>", "<id>",    "<dur>"};
  for (const auto one : kAll) {
    if (text.substr(i, one.size()) == one) return one.size();
  }
  return 0;
}

/// Placeholders become one, and so does the value behind "key=".
std::string SkeletonOf(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '<') {
      if (const size_t n = PlaceholderAt(text, i); n > 0) {
        out += "<>";
        i += n;
        continue;
      }
    }
    out.push_back(text[i++]);
  }
  const size_t equal = out.find('=');
  if (equal == std::string::npos || equal == 0 || equal + 1 >= out.size()) return out;
  size_t tail = out.size();
  while (tail > equal + 1 && std::string_view(",;.)").find(out[tail - 1]) != std::string_view::npos) --tail;
  if (tail == equal + 1) return out;
  return out.substr(0, equal + 1) + "<>" + out.substr(tail);
}

/// Letters that look like the name or the value of something: capitals inside, marks inside, quotes.
bool LooksLikeName(std::string_view core) {
  static constexpr std::array<std::string_view, 7> kValues = {"True", "False", "None", "true", "false", "null", "nan"};
  if (std::find(kValues.begin(), kValues.end(), core) != kValues.end()) return true;
  size_t upper = 0;
  for (size_t i = 0; i < core.size(); ++i) {
    const char c = core[i];
    if (IsUpper(c)) {
      upper += i > 0 || core.size() == 1 ? 1 : 0;
    } else if (!IsLower(c)) {
      return true;
    }
  }
  return upper > 0;
}

}  // namespace

WordTable::WordTable() {
  Word any;
  any.text = "<*>";
  any.kind = WordKind::kMarks;
  any.holes = true;
  any.skeleton = 0;
  words_.push_back(std::move(any));
  ids_.emplace("<*>", kAny);
  skeletons_.emplace("<>", 0);
}

uint32_t WordTable::Id(std::string_view masked) {
  const auto [it, fresh] = ids_.try_emplace(std::string(masked), static_cast<uint32_t>(words_.size()));
  if (!fresh) return it->second;
  Word word;
  word.text = masked;
  std::string skeleton = SkeletonOf(masked);
  word.skeleton = skeletons_.try_emplace(skeleton, static_cast<uint32_t>(skeletons_.size())).first->second;
  word.holes = skeleton.find("<>") != std::string::npos && masked.find('<') != std::string_view::npos;
  size_t letters = 0;
  for (const char c : skeleton) letters += IsLower(c) || IsUpper(c) || static_cast<unsigned char>(c) >= 0x80 ? 1 : 0;
  const char last = masked.empty() ? '\0' : masked.back();
  std::string_view core = masked;
  constexpr std::string_view kAround = ",.;:()[]{}!?%#";
  while (!core.empty() && kAround.find(core.front()) != std::string_view::npos) core.remove_prefix(1);
  while (!core.empty() && kAround.find(core.back()) != std::string_view::npos) core.remove_suffix(1);
  if (letters == 0) {
    word.kind = WordKind::kMarks;
  } else {
    word.kind = word.holes || LooksLikeName(core) ? WordKind::kName : WordKind::kPlain;
  }
  word.leads = last == ':' || last == '=';
  const bool dotted = core.find_first_of("./'\"") != std::string_view::npos;
  word.key = last == ':' && word.kind == WordKind::kName && !word.holes && !dotted;
  word.colon = last == ':' && (word.holes || core.find_first_of("_/.#") == std::string_view::npos);
  words_.push_back(std::move(word));
  return it->second;
}

uint32_t WordTable::Join(uint32_t a, uint32_t b) {
  if (a == b) return a;
  if (a == kAny || b == kAny) return kAny;
  if (words_[a].skeleton != words_[b].skeleton) return kAny;
  // The same word around values of different kinds: they become holes of any kind.
  const std::string text = words_[a].text;
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t n = text[i] == '<' ? PlaceholderAt(text, i) : 0;
    if (n > 0) {
      out += "<*>";
      i += n;
    } else {
      out.push_back(text[i++]);
    }
  }
  const size_t equal = out.find('=');
  if (out == text && equal != std::string::npos) {
    size_t tail = out.size();
    while (tail > equal + 1 && std::string_view(",;.)").find(out[tail - 1]) != std::string_view::npos) --tail;
    out = out.substr(0, equal + 1) + "<*>" + out.substr(tail);
  }
  return Id(out);
}

}  // namespace teller::logs
