#include "tpe/decoder.hpp"

#include <algorithm>
#include <string>

#include "tpe/forest.hpp"

namespace teller::tpe {

base::Result<Forest> Decode(const Vocabulary& vocabulary, std::span<const uint32_t> ids,
                            std::span<const uint32_t> depths, uint64_t max_nodes) {
  const auto bad = [](size_t token, std::string text) {
    return base::Error{base::Code::kBadFormat, std::move(text), {}, "token " + std::to_string(token)};
  };
  if (ids.size() != depths.size()) {
    return base::Error{base::Code::kBadFormat, std::to_string(ids.size()) + " token ids but " +
                                                   std::to_string(depths.size()) + " depths, expected as many"};
  }
  uint64_t nodes = 0;
  uint64_t deepest = kMaxDepth;  // of the next root; the first one may be anywhere
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= vocabulary.size()) {
      return bad(i, "id is " + std::to_string(ids[i]) + ", expected less than " + std::to_string(vocabulary.size()) +
                        "; is this the vocabulary it was encoded with?");
    }
    if (depths[i] >= kMaxDepth || depths[i] > deepest) {
      return bad(i, "depth is " + std::to_string(depths[i]) + ", expected at most " +
                        std::to_string(std::min<uint64_t>(deepest, kMaxDepth - 1)));
    }
    deepest = uint64_t{depths[i]} + vocabulary.last_depth(ids[i]) + 1;
    nodes += vocabulary.node_count(ids[i]);
    if (nodes > max_nodes || nodes > kMaxForestNodes) {
      return base::Error{base::Code::kLimit,
                         "tokens stand for more than " + std::to_string(std::min(max_nodes, kMaxForestNodes)) +
                             " nodes; decode fewer at a time",
                         {},
                         "token " + std::to_string(i)};
    }
  }
  Forest forest;
  forest.symbols.reserve(nodes);
  forest.depths.reserve(nodes);
  for (size_t i = 0; i < ids.size(); ++i) {
    const size_t begin = forest.depths.size();
    vocabulary.Expand(ids[i], depths[i], forest.symbols, forest.depths);
    // Only here can a node be too deep without its root being so.
    if (uint64_t{depths[i]} + vocabulary.node_count(ids[i]) >= kMaxDepth &&
        *std::max_element(forest.depths.begin() + static_cast<ptrdiff_t>(begin), forest.depths.end()) >= kMaxDepth) {
      return bad(i, "holds nodes as deep as " + std::to_string(kMaxDepth));
    }
  }
  return forest;
}

}  // namespace teller::tpe
