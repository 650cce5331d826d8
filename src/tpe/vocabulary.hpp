#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.hpp"

namespace teller::tpe {

/// Entries of a vocabulary, ids below it: 24 bits, so that a pair and its delta are one 64-bit word.
inline constexpr uint32_t kMaxEntries = 1u << 24;
/// Pairs with a larger depth difference never merge (16 bits of that word).
inline constexpr uint32_t kMaxDelta = 0xFFFF;
/// Nodes of one token; pairs that would have more never merge.
inline constexpr uint32_t kMaxTokenNodes = 1u << 24;
/// Classes of symbols.
inline constexpr uint32_t kMaxClasses = 1u << 12;
/// Bytes of one name.
inline constexpr uint32_t kMaxNameBytes = 1u << 16;

/// Two neighbouring tokens and how much deeper the right one's root is.
struct Pair {
  uint32_t left = 0;
  uint32_t right = 0;
  uint32_t delta = 0;

  friend auto operator<=>(const Pair&, const Pair&) = default;
};

/// The pair as one word; its order is the order of (left, right, delta).
constexpr uint64_t Word(const Pair& pair) {
  return (uint64_t{pair.left} << 40) | (uint64_t{pair.right} << 16) | pair.delta;
}
constexpr Pair PairOf(uint64_t word) {
  return {static_cast<uint32_t>(word >> 40), static_cast<uint32_t>(word >> 16) & (kMaxEntries - 1),
          static_cast<uint32_t>(word) & kMaxDelta};
}

/// What an entry is. The values are those of the file.
enum class EntryKind : uint8_t {
  kUnknown = 0,  ///< stands for all names of a class that the vocabulary lacks
  kBase = 1,     ///< a name of a class
  kMerge = 2,    ///< a pair of entries before it
};

/// A name as a symbol of a vocabulary.
struct Symbol {
  uint32_t id = 0;
  bool known = true;
  uint64_t name_hash = 0;  ///< NameHash of an unknown name, to be kept beside its node; 0 when known
};

/// Stable 64-bit hash of a name (FNV-1a): the same on every machine and in every version.
uint64_t NameHash(std::string_view name);

/// The entries by which forests are encoded, and their shapes. Append-only: an id never changes its meaning, so whoever
/// knows a vocabulary knows the beginning of each that was extended from it. Merges are applied in the order of their
/// ids. Threads: confined while growing, immutable after.
class Vocabulary {
 public:
  /// Adds a class of symbols and its unknown entry; the entry's id is Unknown(class). Errors: kLimit; kUsage when the
  /// name is there, empty or too long.
  base::Result<uint32_t> AddClass(std::string_view name);
  /// Adds a name; gives its id. Errors: kUsage (no such class, name is there or too long), kLimit.
  base::Result<uint32_t> AddBase(uint32_t class_index, std::string_view name);
  /// Adds a merge; gives its id. Errors: kBadFormat (left or right do not stand before it, no forest can have this
  /// delta, the pair is there), kLimit (too many entries, nodes or too deep).
  base::Result<uint32_t> AddMerge(const Pair& pair);

  /// All entries: ids are below it.
  uint32_t size() const { return static_cast<uint32_t>(entries_.size()); }
  uint32_t merge_count() const { return merges_; }
  /// Entries that are not merges, unknown ones included.
  uint32_t base_count() const { return size() - merges_; }
  uint32_t class_count() const { return static_cast<uint32_t>(classes_.size()); }
  const std::string& class_name(uint32_t class_index) const { return classes_[class_index].name; }
  std::optional<uint32_t> FindClass(std::string_view name) const;

  EntryKind kind(uint32_t id) const { return entries_[id].kind; }
  bool is_merge(uint32_t id) const { return entries_[id].kind == EntryKind::kMerge; }
  /// Left, right and delta of a merge.
  Pair pair(uint32_t id) const { return {entries_[id].left, entries_[id].right, entries_[id].delta}; }
  /// Class of a base or unknown entry.
  uint32_t class_of(uint32_t id) const { return entries_[id].left; }
  /// Name of a base entry; empty for others. Lifetime: until the vocabulary grows.
  std::string_view name(uint32_t id) const;
  /// Nodes that the entry stands for; 1 unless it is a merge.
  uint32_t node_count(uint32_t id) const { return entries_[id].node_count; }
  /// How much deeper than the root the entry's last node is.
  uint32_t last_depth(uint32_t id) const { return entries_[id].last_depth; }
  /// Unknown nodes inside the entry: how many name hashes, in pre-order, belong to a token of it.
  uint32_t unknown_count(uint32_t id) const { return entries_[id].unknown_count; }

  /// The unknown entry of a class.
  uint32_t Unknown(uint32_t class_index) const { return classes_[class_index].unknown; }
  /// The entry for a name: its own, or the class's unknown one and the name's hash. Never fails for a class that
  /// exists.
  Symbol SymbolFor(uint32_t class_index, std::string_view name) const;
  std::optional<uint32_t> Find(uint32_t class_index, std::string_view name) const;

  /// Appends the nodes of an entry: base ids, and depths counted from `depth`. No recursion. Cost: O(nodes).
  void Expand(uint32_t id, uint32_t depth, std::vector<uint32_t>& symbols, std::vector<uint32_t>& depths) const;

  friend bool operator==(const Vocabulary& a, const Vocabulary& b);

 private:
  struct Entry {
    EntryKind kind;
    uint32_t left;   // class for bases
    uint32_t right;  // row of names_ for bases
    uint32_t delta;
    uint32_t node_count;
    uint32_t last_depth;
    uint32_t unknown_count;
  };
  struct Class {
    std::string name;
    uint32_t unknown;
  };
  std::vector<Entry> entries_;
  std::vector<Class> classes_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint32_t> by_name_;  // key: class index in four bytes, then the name
  /// Words of pairs come from files: a hash that files cannot be made for. Nothing depends on its order.
  struct PairHash {
    size_t operator()(uint64_t word) const;
  };
  std::unordered_map<uint64_t, uint32_t, PairHash> by_pair_;
  uint32_t merges_ = 0;
};

}  // namespace teller::tpe
