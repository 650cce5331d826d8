#pragma once

#include "inject/sim/faults.hpp"

namespace teller::inject::sim {

/// Where a request's keys can come from besides being computed.
enum class KvSource : uint8_t {
  kNone,
  kPrefill,  ///< a second instance computes prompts; this one only decodes
  kTier,     ///< shared prefixes lie in a tier below the GPU's memory
};

/// Optional parts of a service. Runs of every kind have them now and then, so that a part is no label.
struct Parts {
  int drafts = 0;     ///< tokens that a small model proposes a step; 0 = no speculative decoding
  double accept = 0;  ///< chance that a proposed token is right when those before it were
  KvSource kv = KvSource::kNone;
  int save_every = 0;  ///< FSDP: steps between two checkpoints; 0 = none
};

/// Draws the parts of a run; those that the kind is about are always there. Takes the same number of draws for every
/// kind.
Parts DrawParts(Kind kind, Engine engine, base::Rng& rng);

/// Tokens that a decoding sequence gets a step, on average.
double MeanAccepted(const Parts& parts);

/// The way on which keys come: one transfer after the other. Threads: confined.
class KvLink {
 public:
  struct Fetched {
    Nanos begin = 0;
    Nanos end = 0;
    int64_t bytes = 0;
    bool broken = false;
  };

  /// `token_bytes`: keys and values of one token.
  KvLink(double bytes_per_ns, int64_t token_bytes, Nanos latency, uint64_t seed)
      : speed_(bytes_per_ns), token_bytes_(token_bytes), latency_(latency), rng_(seed) {}
  /// Divides the speed by `slower`; a share of `broken` transfers fails.
  void Disturb(double slower, double broken) {
    slower_ = slower;
    broken_ = broken;
  }
  /// Queues a transfer; it begins when those before it are over.
  const Fetched& Fetch(int64_t tokens, Nanos now);
  /// Bytes that came between two times.
  int64_t Moved(Nanos from, Nanos to) const;
  const std::vector<Fetched>& all() const { return all_; }

 private:
  double speed_;
  int64_t token_bytes_;
  Nanos latency_;
  base::Rng rng_;
  double slower_ = 1;
  double broken_ = 0;
  Nanos free_ = 0;
  std::vector<Fetched> all_;
};

}  // namespace teller::inject::sim
