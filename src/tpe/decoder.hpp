#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "tpe/vocabulary.hpp"

namespace teller::tpe {

/// A forest that owns its columns.
struct Forest {
  std::vector<uint32_t> symbols;
  std::vector<uint32_t> depths;
};

/// Gives the nodes of tokens back. Errors: kBadFormat (columns differ in length, no such id, a token deeper than one
/// below the node before it), with the token; kLimit (more than `max_nodes` nodes; checked before anything is
/// expanded). Cost: O(nodes).
base::Result<Forest> Decode(const Vocabulary& vocabulary, std::span<const uint32_t> ids,
                            std::span<const uint32_t> depths, uint64_t max_nodes = 1u << 28);

}  // namespace teller::tpe
