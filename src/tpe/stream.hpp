#pragma once

#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "tpe/encoder.hpp"

namespace teller::tpe {

/// Encodes a live forest whose nodes come one by one in pre-order. The tokens of a step, taken together, are those of
/// Encoder::Encode on the whole step.
///
/// Tokens come out at *cuts*, places that no token of the vocabulary can span (the two nodes with their depth
/// difference are nowhere neighbours inside an entry), once `min_batch` nodes wait, and at the latest with End. Memory:
/// the nodes since the last cut, at most `max_nodes` (2^30 or less); when so many wait without a cut they are encoded
/// as if the step ended there, and counted in forced_cuts. Nothing is allocated once the longest batch has been seen.
/// Lifetime: the encoder outlives it. Threads: confined.
class StreamEncoder {
 public:
  struct Options {
    uint32_t min_batch = 256;
    uint32_t max_nodes = 1u << 22;
  };
  explicit StreamEncoder(const Encoder& encoder) : StreamEncoder(encoder, Options{}) {}
  StreamEncoder(const Encoder& encoder, Options options);

  /// Adds a node; appends to `out` what became final (first_node counts from the step's first node). Errors: as Encode;
  /// the node is then not part of the step.
  base::Status Push(uint32_t symbol, uint32_t depth, Tokens& out);
  /// Ends the step: appends the rest. The next node starts another step.
  base::Status End(Tokens& out);

  /// Nodes that wait.
  uint32_t waiting() const { return static_cast<uint32_t>(symbols_.size()); }
  uint64_t forced_cuts() const { return forced_cuts_; }

 private:
  base::Status Flush(Tokens& out);

  const Encoder& encoder_;
  Options options_;
  EncodeScratch scratch_;
  Tokens batch_;
  std::vector<uint32_t> symbols_;
  std::vector<uint32_t> depths_;
  uint32_t last_depth_ = 0;  // of the node pushed last
  uint32_t done_ = 0;        // nodes of the step that came out
  uint64_t forced_cuts_ = 0;
};

}  // namespace teller::tpe
