#pragma once

#include <cstdint>
#include <vector>

#include "trace/types.hpp"
#include "tree/kernel_name.hpp"

namespace teller::tree {

/// One element of a kernel sequence, as far as alignment looks at it. Numbers are those of one numbering for all
/// sequences.
struct GraphToken {
  trace::SpanKind kind = trace::SpanKind::kKernel;  ///< kernel, copy or memset
  KernelClass work = KernelClass::kUnknown;
  uint32_t name = 0;    ///< the exact name; 0 = the sequence does not tell (launches of a CUDA capture)
  uint32_t family = 0;  ///< the name without numbers
  uint32_t stem = 0;    ///< the function without template arguments
  uint32_t place = 0;   ///< what the sequence says where it is from (module path); ignored in a replay

  friend bool operator==(const GraphToken&, const GraphToken&) = default;
};

/// How well two tokens agree.
enum class Agreement : uint8_t { kNone = 0, kClass = 1, kStem = 2, kFamily = 3, kExact = 4 };
Agreement Compare(const GraphToken& a, const GraphToken& b);

struct AlignOptions {
  bool open_ends = false;              ///< the reference may go on at both ends (a step does more than its graph)
  size_t max_cells = size_t{1} << 23;  ///< of the table; longer sequences are aligned in a band around their diagonal
};

/// One element of the replay and what it was aligned to.
struct AlignedPair {
  uint32_t replay = 0;
  uint32_t reference = 0;
  Agreement agreement = Agreement::kNone;  ///< kNone: another kernel stands in the same place
  /// How much worse the best alignment is that puts this element to another place. Large = no other place fits.
  int32_t margin = 0;
  uint32_t rival =
      0;  ///< the element of the reference that the next best alignment takes; == reference when there is none
};

struct Alignment {
  std::vector<AlignedPair> pairs;  ///< order: both numbers ascend
  uint32_t agreeing = 0;           ///< pairs with an agreement
  uint32_t runs = 0;               ///< agreeing pairs whose predecessors are aligned to each other and agree
  int64_t score = 0;
  bool banded = false;
};

/// Global alignment with affine gaps (Gotoh 1982) that also says for each pair how much the next best place is worse
/// (forward and backward scores). Cost: O(n m) time up to max_cells, then O(max_cells); memory 6 bytes a cell.
Alignment Align(const std::vector<GraphToken>& replay, const std::vector<GraphToken>& reference,
                const AlignOptions& options);

/// Pairs the elements of equally long sequences by their number alone: where a reference names no kernels, its length
/// and order are the proof, and a search for better places would only follow words in the names of operators.
Alignment PairInOrder(const std::vector<GraphToken>& replay, const std::vector<GraphToken>& reference);

/// A pair with a smaller margin may as well belong elsewhere.
inline constexpr int32_t kSafeMargin = 4;

}  // namespace teller::tree
