#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "encode/forest.hpp"
#include "encode/normal.hpp"
#include "tpe/tokens.hpp"

namespace teller::encode {

/// What a token carries beside its id and depth.
struct TokenAttributes {
  tpe::Constituent parent;  ///< node that its root hangs under; token kNoToken for roots of the forest
  trace::Nanos total = 0;   ///< of its roots (siblings of equal depth), with everything below them
  trace::Nanos self = 0;    ///< sum of its nodes' self times; summed over all tokens: that of the forest
  /// The worst constituent: the node with the largest residual, the first of equal ones; its place in the token
  /// (pre-order, from 0). Meaningless when `worst` is not known.
  uint32_t worst_offset = 0;
  Residual worst;
};

/// One a token. `residuals` has one entry a node (of NodeNormals, or of any other judge); nodes without a residual are
/// never the worst. Cost: O(nodes).
std::vector<TokenAttributes> Attributes(const Forest& forest, const tpe::Tokens& tokens,
                                        std::span<const Residual> residuals);

/// The forest as tpe sees it, with symbols from `ids`.
tpe::ForestView View(std::span<const uint32_t> ids, const Forest& forest);

}  // namespace teller::encode
