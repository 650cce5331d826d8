#include "tpe/vocabulary.hpp"

#include <algorithm>
#include <utility>

#include "tpe/process_seed.hpp"

namespace teller::tpe {
namespace {

std::string NameKey(uint32_t class_index, std::string_view name) {
  std::string key;
  key.reserve(4 + name.size());
  for (int shift = 0; shift < 32; shift += 8) key.push_back(static_cast<char>((class_index >> shift) & 0xFF));
  return key.append(name);
}

base::Error Full() {
  return {base::Code::kLimit,
          "vocabulary has " + std::to_string(kMaxEntries) + " entries, which is the most it can hold"};
}

base::Error BadPair(const Pair& pair, const std::string& why) {
  return {base::Code::kBadFormat, "merge of " + std::to_string(pair.left) + " and " + std::to_string(pair.right) +
                                      " with delta " + std::to_string(pair.delta) + " " + why};
}

}  // namespace

uint64_t NameHash(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325ULL;  // offset and prime of FNV-1a, 64 bits
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3ULL;
  return hash;
}

base::Result<uint32_t> Vocabulary::AddClass(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return base::Error{base::Code::kUsage, "name of a class has " + std::to_string(name.size()) +
                                               " bytes, expected 1 to " + std::to_string(kMaxNameBytes)};
  }
  if (FindClass(name)) return base::Error{base::Code::kUsage, "class is in the vocabulary already"};
  if (classes_.size() >= kMaxClasses) {
    return base::Error{base::Code::kLimit,
                       "vocabulary has " + std::to_string(kMaxClasses) + " classes, which is the most"};
  }
  if (size() >= kMaxEntries) return Full();
  const auto index = static_cast<uint32_t>(classes_.size());
  classes_.push_back({std::string(name), size()});
  entries_.push_back({EntryKind::kUnknown, index, 0, 0, 1, 0, 1});
  return index;
}

base::Result<uint32_t> Vocabulary::AddBase(uint32_t class_index, std::string_view name) {
  if (class_index >= classes_.size()) {
    return base::Error{base::Code::kUsage, "class " + std::to_string(class_index) + " is not in the vocabulary"};
  }
  if (name.size() > kMaxNameBytes) {
    return base::Error{base::Code::kUsage, "name has " + std::to_string(name.size()) + " bytes, expected at most " +
                                               std::to_string(kMaxNameBytes)};
  }
  if (size() >= kMaxEntries) return Full();
  if (!by_name_.emplace(NameKey(class_index, name), size()).second) {
    return base::Error{base::Code::kUsage, "name is in the vocabulary already"};
  }
  entries_.push_back({EntryKind::kBase, class_index, static_cast<uint32_t>(names_.size()), 0, 1, 0, 0});
  names_.emplace_back(name);
  return size() - 1;
}

size_t Vocabulary::PairHash::operator()(uint64_t word) const {
  static const uint64_t seed = ProcessSeed();
  uint64_t x = word ^ seed;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return static_cast<size_t>(x ^ (x >> 31) ^ seed);
}

base::Result<uint32_t> Vocabulary::AddMerge(const Pair& pair) {
  if (pair.left >= size() || pair.right >= size()) return BadPair(pair, "uses entries that do not stand before it");
  const Entry& left = entries_[pair.left];
  const Entry& right = entries_[pair.right];
  if (pair.delta > left.last_depth + 1) {
    return BadPair(pair, "is impossible: the left one's last node is " + std::to_string(left.last_depth) +
                             " deeper than its root, so delta is at most one more");
  }
  if (pair.delta > kMaxDelta) return base::Error{base::Code::kLimit, BadPair(pair, "is too deep").message};
  if (left.node_count + right.node_count > kMaxTokenNodes) {
    return base::Error{base::Code::kLimit, BadPair(pair, "has too many nodes").message};
  }
  if (size() >= kMaxEntries) return Full();
  if (!by_pair_.emplace(Word(pair), size()).second) return BadPair(pair, "is in the vocabulary already");
  entries_.push_back({EntryKind::kMerge, pair.left, pair.right, pair.delta, left.node_count + right.node_count,
                      pair.delta + right.last_depth, left.unknown_count + right.unknown_count});
  ++merges_;
  return size() - 1;
}

std::optional<uint32_t> Vocabulary::FindClass(std::string_view name) const {
  const auto at = std::find_if(classes_.begin(), classes_.end(), [&](const Class& c) { return c.name == name; });
  if (at == classes_.end()) return std::nullopt;
  return static_cast<uint32_t>(at - classes_.begin());
}

std::string_view Vocabulary::name(uint32_t id) const {
  return entries_[id].kind == EntryKind::kBase ? std::string_view(names_[entries_[id].right]) : std::string_view();
}

std::optional<uint32_t> Vocabulary::Find(uint32_t class_index, std::string_view name) const {
  const auto at = by_name_.find(NameKey(class_index, name));
  if (at == by_name_.end()) return std::nullopt;
  return at->second;
}

Symbol Vocabulary::SymbolFor(uint32_t class_index, std::string_view name) const {
  if (const auto id = Find(class_index, name)) return {*id, true, 0};
  return {Unknown(class_index), false, NameHash(name)};
}

void Vocabulary::Expand(uint32_t id, uint32_t depth, std::vector<uint32_t>& symbols,
                        std::vector<uint32_t>& depths) const {
  std::vector<std::pair<uint32_t, uint32_t>> waiting = {{id, depth}};
  while (!waiting.empty()) {
    const auto [entry, at] = waiting.back();
    waiting.pop_back();
    if (is_merge(entry)) {
      waiting.emplace_back(entries_[entry].right, at + entries_[entry].delta);
      waiting.emplace_back(entries_[entry].left, at);
    } else {
      symbols.push_back(entry);
      depths.push_back(at);
    }
  }
}

bool operator==(const Vocabulary& a, const Vocabulary& b) {
  const auto same_class = [](const auto& x, const auto& y) { return x.name == y.name && x.unknown == y.unknown; };
  const auto same_entry = [](const auto& x, const auto& y) {
    return x.kind == y.kind && x.left == y.left && x.right == y.right && x.delta == y.delta;
  };
  return a.names_ == b.names_ &&
         std::equal(a.classes_.begin(), a.classes_.end(), b.classes_.begin(), b.classes_.end(), same_class) &&
         std::equal(a.entries_.begin(), a.entries_.end(), b.entries_.begin(), b.entries_.end(), same_entry);
}

}  // namespace teller::tpe
