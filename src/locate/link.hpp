#pragma once

#include <optional>
#include <vector>

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// Which link is slow, as far as leaving times show.
struct SlowLink {
  std::optional<int> sender;    ///< whose sends are slow; none when the ranks leave in no order of their own
  std::optional<int> receiver;  ///< who waits for them
  bool both_ways = false;       ///< `sender` is slow in both directions: the rank, not one link
  double share = 0;             ///< of the slow collectives that agree
  Nanos apart = 0;              ///< median time between the sender's leaving and the receiver's
};

/// Waiting that only passes on how late a rank left its collective before, by span of the waiting member. The rank that
/// the others wait for is then not late by itself: whoever receives over a slow link leaves last and so arrives last at
/// the next collective, with nothing longer in between.
class CarriedWaits {
 public:
  explicit CarriedWaits(const Scene& scene);
  /// Of process `process` in [begin, end).
  Nanos In(uint32_t process, Nanos begin, Nanos end) const;

 private:
  struct Wait {
    Nanos at = 0;
    Nanos until_here = 0;  ///< sum of all before and this one
  };
  std::vector<std::vector<Wait>> by_process_;
};

/// Reads the link from the order in which ranks leave the slow collectives (indices into Trees::collectives), against
/// how they leave the others. In a ring in rank order, as gloo and NCCL build it on one node each, every round waits
/// for the one before. A slow hop from i to i+1 delays i+1 most, then i+2, and i last of all: the receiver leaves last,
/// the sender first. Of a rank i that is slow towards both neighbours, i+1 leaves last and i-1 first. In another order
/// than that no link is named: trees, halving and rings over several channels leave otherwise.
SlowLink FindSlowLink(const Scene& scene, const std::vector<uint32_t>& slow);

}  // namespace teller::locate
