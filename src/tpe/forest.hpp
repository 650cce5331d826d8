#pragma once

#include <cstdint>
#include <span>

#include "base/status.hpp"

namespace teller::tpe {

/// Depths stay below this, so that sums of two fit in 32 bits.
inline constexpr uint32_t kMaxDepth = 1u << 30;
/// Nodes of all sequences of a corpus: positions are 32 bits.
inline constexpr uint64_t kMaxNodes = 0xFFFFFF00u;
/// Nodes of one forest: three list entries for each are numbered with 32 bits.
inline constexpr uint64_t kMaxForestNodes = 1u << 30;

/// An ordered forest in pre-order; entry i of both columns is node i. The first node may have any depth (a slice starts
/// inside a tree); each other one is at most one deeper than the node before it.
/// Lifetime: views; the columns outlive it.
struct ForestView {
  std::span<const uint32_t> symbols;
  std::span<const uint32_t> depths;  ///< below kMaxDepth

  size_t size() const { return symbols.size(); }
};

/// Checks what ForestView promises. Errors: kBadFormat (a depth leaps or is too large, columns differ in length), with
/// the node; kLimit (more than kMaxForestNodes nodes).
base::Status ValidateForest(const ForestView& forest);

}  // namespace teller::tpe
