#pragma once

#include <cstdint>
#include <vector>

#include "tpe/forest.hpp"

namespace teller::tpe {

/// A node as a part of a token.
struct Constituent {
  uint32_t token = 0;   ///< index into Tokens; kNoToken for "none"
  uint32_t offset = 0;  ///< which of the token's nodes, in pre-order from 0

  friend bool operator==(const Constituent&, const Constituent&) = default;
};
inline constexpr uint32_t kNoToken = 0xFFFFFFFFu;

/// An encoded forest; entry i of each column is token i. Ids and depths alone give the forest back.
struct Tokens {
  std::vector<uint32_t> ids;     ///< entries of the vocabulary
  std::vector<uint32_t> depths;  ///< depth of the token's first node, its root
  std::vector<uint32_t>
      first_node;  ///< position of the root in the forest; ascending. Token i covers up to first_node[i + 1]

  size_t size() const { return ids.size(); }
  bool empty() const { return ids.empty(); }
  void clear();

  /// The token and the place in it of a node of the forest. Cost: O(log tokens).
  Constituent Locate(uint32_t node) const;
  /// The other way.
  uint32_t Node(Constituent constituent) const { return first_node[constituent.token] + constituent.offset; }
};

/// For each token the constituent that is the parent of its root: the last node before it that is one less deep; token
/// kNoToken where no such node precedes. `forest` is what was encoded. Cost: O(nodes), an explicit stack of depth
/// entries.
std::vector<Constituent> Parents(const Tokens& tokens, const ForestView& forest);

}  // namespace teller::tpe
