#include "encode/attributes.hpp"

namespace teller::encode {

std::vector<TokenAttributes> Attributes(const Forest& forest, const tpe::Tokens& tokens,
                                        std::span<const Residual> residuals) {
  std::vector<TokenAttributes> out(tokens.size());
  const std::vector<tpe::Constituent> parents = tpe::Parents(tokens, View(forest.symbol, forest));
  for (size_t t = 0; t < tokens.size(); ++t) {
    TokenAttributes& token = out[t];
    token.parent = parents[t];
    const size_t first = tokens.first_node[t];
    const size_t last = t + 1 < tokens.size() ? tokens.first_node[t + 1] : forest.size();
    for (size_t node = first; node < last; ++node) {
      token.self += forest.self[node];
      if (forest.depth[node] == tokens.depths[t]) token.total += forest.total[node];
      if (residuals[node].z <= token.worst.z) continue;
      token.worst = residuals[node];
      token.worst_offset = static_cast<uint32_t>(node - first);
    }
  }
  return out;
}

tpe::ForestView View(std::span<const uint32_t> ids, const Forest& forest) {
  return {ids, forest.depth};
}

}  // namespace teller::encode
