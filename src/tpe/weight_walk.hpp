#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace teller::tpe {

/// Positions from `begin` to the next stretch, whose sequences have one weight.
struct Stretch {
  uint32_t begin = 0;
  uint64_t weight = 0;
};

/// Finds the weights of ascending positions.
/// Walks along the stretches of equal weight; leaps double, so that a far position costs a logarithm.
class WeightWalk {
 public:
  explicit WeightWalk(const std::vector<Stretch>& stretches) : stretches_(stretches) {}

  uint64_t At(uint32_t position) {
    if (stretches_.size() == 1) return stretches_[0].weight;
    size_t leap = 1;
    while (at_ + leap < stretches_.size() && stretches_[at_ + leap].begin <= position) {
      at_ += leap;
      leap *= 2;
    }
    for (; leap > 0; leap /= 2) {
      if (at_ + leap < stretches_.size() && stretches_[at_ + leap].begin <= position) at_ += leap;
    }
    return stretches_[at_].weight;
  }

 private:
  const std::vector<Stretch>& stretches_;
  size_t at_ = 0;
};

}  // namespace teller::tpe
