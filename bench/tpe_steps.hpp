#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/rng.hpp"
#include "tpe/decoder.hpp"

namespace teller::bench {

/// Makes steps like those of an inference engine: head, many layers of a few kinds with calls of API and kernels, tail;
/// and noise of four kinds, so that hardly any two steps are equal: other kernel variants, calls between, calls left
/// out, other kinds of steps.
class StepMaker {
 public:
  /// Noise: share of nodes that something happens to.
  StepMaker(uint64_t seed, double noise) : rng_(seed), noise_(noise) {
    for (int kind = 0; kind < kKinds; ++kind) {
      heads_.push_back(Tree(40, 6));
      tails_.push_back(Tree(60, 6));
      for (int layer = 0; layer < kLayerKinds; ++layer)
        layers_.push_back(Tree(25 + static_cast<int>(rng_.Below(40)), 8));
    }
  }

  static constexpr uint32_t kSymbols = 400;

  /// The next step; some thousand nodes.
  tpe::Forest Next() {
    tpe::Forest step;
    const auto kind = static_cast<size_t>(rng_.Below(10) < 8 ? 0 : 1 + rng_.Below(kKinds - 1));
    Add(step, heads_[kind], 1);
    for (int layer = 0; layer < 48; ++layer) {
      // Each sixth layer is of another kind, as in models that mix two sorts of attention.
      Add(step, layers_[kind * kLayerKinds + (layer % 6 == 5 ? 1 : 0)], 2);
    }
    Add(step, tails_[kind], 1);
    return step;
  }

 private:
  static constexpr int kKinds = 4;
  static constexpr int kLayerKinds = 2;

  /// Few names are frequent, many are rare.
  uint32_t Symbol() {
    const double u = rng_.Unit();
    return static_cast<uint32_t>(u * u * kSymbols);
  }
  tpe::Forest Tree(int nodes, uint32_t deepest) {
    tpe::Forest tree;
    uint32_t depth = 0;
    for (int i = 0; i < nodes; ++i) {
      tree.symbols.push_back(Symbol());
      tree.depths.push_back(depth);
      // Operators nest; launches and kernels end the branch.
      depth = rng_.Below(2) == 0 ? std::min(depth + 1, deepest) : 1 + static_cast<uint32_t>(rng_.Below(depth + 1));
    }
    return tree;
  }
  void Add(tpe::Forest& step, const tpe::Forest& part, uint32_t depth) {
    for (size_t i = 0; i < part.symbols.size(); ++i) {
      uint32_t symbol = part.symbols[i];
      uint32_t at = part.depths[i] + depth;
      if (rng_.Unit() < noise_) {
        const uint64_t what = rng_.Below(3);
        if (what == 0) continue;
        if (what == 1) symbol = Symbol();
        if (what == 2) Put(step, Symbol(), at);
      }
      Put(step, symbol, at);
    }
  }
  void Put(tpe::Forest& step, uint32_t symbol, uint32_t depth) {
    if (!step.depths.empty()) depth = std::min(depth, step.depths.back() + 1);
    step.symbols.push_back(symbol);
    step.depths.push_back(depth);
  }

  base::Rng rng_;
  double noise_;
  std::vector<tpe::Forest> heads_, tails_, layers_;
};

}  // namespace teller::bench
