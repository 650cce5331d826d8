#pragma once

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "encode/forest.hpp"

namespace teller::encode {

/// What a node's self time deviates from normal by. No residual where nothing is known to compare with.
struct Residual {
  float z = kUnknown;       ///< excess in robust standard deviations; kUnknown = not judged
  trace::Nanos excess = 0;  ///< self time above the normal one; may be negative

  static constexpr float kUnknown = -std::numeric_limits<float>::infinity();
  bool known() const { return z > kUnknown; }
};

/// Normal self time of every node of a run: median and median absolute deviation over equal nodes of the run's forests.
/// Equal are nodes of one symbol at one call path, with equal input sizes, tensor label family and step kind; where
/// these are fewer than kFewest, nodes of one symbol under one parent symbol; where these are too few too, nothing is
/// known. The scale is never below 5 % of the median or 1 us, as clocks are not finer. `locate` judges slots (operators
/// and host time of a step's main thread) to find causes; this judges each node of each layer alone, because any of
/// them may be the one that a token hides. Threads: const calls are concurrent. Deterministic: independent of the order
/// of forests.
class NodeNormals {
 public:
  NodeNormals(const trace::Store& store, const trace::Trees& trees) : store_(store), trees_(trees) {}

  /// Collects; call Finish after the last one.
  void Add(const Segment& segment, const Forest& forest);
  void Finish();

  /// One a node of the forest.
  std::vector<Residual> Judge(const Segment& segment, const Forest& forest) const;

  static constexpr size_t kFewest = 5;

 private:
  struct Normal {
    float median = 0;
    float scale = 0;  ///< 0 = too few
  };
  struct Keys {
    uint64_t exact = 0;
    uint64_t loose = 0;
  };

  std::vector<Keys> KeysOf(const Segment& segment, const Forest& forest) const;

  const trace::Store& store_;
  const trace::Trees& trees_;
  std::unordered_map<uint64_t, std::vector<float>> samples_;
  std::unordered_map<uint64_t, Normal> normals_;
};

}  // namespace teller::encode
