#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace teller::ingest::flight_recorder {

enum class ValueKind : uint8_t { kNull, kBool, kInteger, kReal, kText, kList, kMap };
using ValueId = uint32_t;

/// A document as plain values, whatever notation it was written in. Lists and maps hold ids, so that a value that a
/// pickle names twice is stored once, and may even hold itself: a walk over everything has to bound itself.
class ValueTree {
 public:
  /// Values of one document. A recorder's ring of 20,000 entries with their stacks has some millions.
  static constexpr size_t kMaxValues = 1u << 25;

  ValueId AddNull() { return Add({}); }
  ValueId AddBool(bool value) { return Add({.kind = ValueKind::kBool, .integer = value ? 1 : 0}); }
  ValueId AddInteger(int64_t value) { return Add({.kind = ValueKind::kInteger, .integer = value}); }
  ValueId AddReal(double value) { return Add({.kind = ValueKind::kReal, .real = value}); }
  /// `text` must outlive the tree.
  ValueId AddText(std::string_view text) { return Add({.kind = ValueKind::kText, .text = text}); }
  ValueId AddOwnText(std::string text) { return AddText(texts_.emplace_back(std::move(text))); }
  ValueId AddList() { return Add({.kind = ValueKind::kList, .integer = -1}); }
  ValueId AddMap() { return Add({.kind = ValueKind::kMap, .integer = -1}); }
  /// Appends to a list; to a map a key, then its value.
  void Append(ValueId container, ValueId item);

  bool full() const { return nodes_.size() >= kMaxValues; }
  ValueKind kind(ValueId id) const { return nodes_[id].kind; }
  ValueId root = 0;

 private:
  friend class Value;
  struct Node {
    ValueKind kind = ValueKind::kNull;
    union {
      int64_t integer = 0;  ///< of lists and maps: index into children_, -1 = nothing in it
      double real;
      std::string_view text;
    };
  };
  ValueId Add(Node node) {
    nodes_.push_back(node);
    return static_cast<ValueId>(nodes_.size() - 1);
  }

  std::vector<Node> nodes_;
  std::vector<std::vector<ValueId>> children_;
  std::deque<std::string> texts_;
};

/// One value of a tree; an absent one answers like null. Threads: reads only.
class Value {
 public:
  Value() = default;
  Value(const ValueTree& tree, ValueId id) : tree_(&tree), id_(id) {}

  explicit operator bool() const { return tree_ != nullptr; }
  ValueId id() const { return id_; }
  ValueKind kind() const { return tree_ == nullptr ? ValueKind::kNull : tree_->nodes_[id_].kind; }
  bool IsNull() const { return kind() == ValueKind::kNull; }
  /// An integer, or a text that is one: some writers quote numbers.
  std::optional<int64_t> Integer() const;
  std::optional<bool> Bool() const;
  std::optional<double> Real() const;
  std::optional<std::string_view> TextView() const;
  /// Items of a list, pairs of a map; 0 for others.
  size_t size() const;
  /// Item of a list; value of a map's pair.
  Value at(size_t index) const;
  Value KeyAt(size_t index) const;
  /// Value of a map's last pair with this key; numbers as keys match their decimal text. Absent when there is none.
  Value Find(std::string_view key) const;

 private:
  const std::vector<ValueId>* Children() const;
  const ValueTree* tree_ = nullptr;
  ValueId id_ = 0;
};

/// Appends `value` as JSON without blanks. False when that takes more than `limit` bytes or nests too deeply; `out`
/// then holds a part.
bool Minify(Value value, size_t limit, std::string& out);

/// A text as it is, a number as decimal, others as JSON; cut at `limit` bytes.
std::string ToText(Value value, size_t limit);

}  // namespace teller::ingest::flight_recorder
