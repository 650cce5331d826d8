#include "tpe/tokens.hpp"

#include <algorithm>

namespace teller::tpe {

void Tokens::clear() {
  ids.clear();
  depths.clear();
  first_node.clear();
}

Constituent Tokens::Locate(uint32_t node) const {
  const auto after = std::upper_bound(first_node.begin(), first_node.end(), node);
  if (after == first_node.begin()) return {kNoToken, 0};
  const auto token = static_cast<uint32_t>(after - first_node.begin() - 1);
  return {token, node - first_node[token]};
}

std::vector<Constituent> Parents(const Tokens& tokens, const ForestView& forest) {
  std::vector<Constituent> parents(tokens.size(), Constituent{kNoToken, 0});
  struct Ancestor {
    uint32_t depth;
    Constituent node;
  };
  std::vector<Ancestor> path;  // ascending depths: the last node of each depth that can still have children
  for (uint32_t token = 0; token < tokens.size(); ++token) {
    const size_t begin = tokens.first_node[token];
    const size_t end = token + 1 < tokens.size() ? tokens.first_node[token + 1] : forest.size();
    for (size_t i = begin; i < end; ++i) {
      const uint32_t depth = forest.depths[i];
      while (!path.empty() && path.back().depth >= depth) path.pop_back();
      // A forest that starts inside a tree may go up past its first node: then nothing of depth - 1 was seen.
      if (i == begin && !path.empty() && path.back().depth + 1 == depth) parents[token] = path.back().node;
      path.push_back({depth, {token, static_cast<uint32_t>(i - begin)}});
    }
  }
  return parents;
}

}  // namespace teller::tpe
