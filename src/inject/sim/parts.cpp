#include "inject/sim/parts.hpp"

#include <algorithm>
#include <cmath>

namespace teller::inject::sim {

namespace {

/// Kinds that are about prompts which this instance computes, or about the cache that holds them.
bool NeedsOwnPrompts(Kind kind) {
  switch (kind) {
    case Kind::kLongPrefill:
    case Kind::kPrefillBlocking:
    case Kind::kPrefixMiss:
    case Kind::kPreForward:
    case Kind::kKvPressure: return true;
    default: return false;
  }
}

bool Drafts(Kind kind) {
  return kind == Kind::kSpecCollapse || kind == Kind::kSpeculation;
}

}  // namespace

Parts DrawParts(Kind kind, Engine engine, base::Rng& rng) {
  const double which = rng.Unit();
  const int drafts = 3 + static_cast<int>(rng.Below(3));
  const double accept = 0.6 + 0.25 * rng.Unit();
  const int save_every = 8 + static_cast<int>(rng.Below(5));
  Parts parts;
  if (engine == Engine::kFsdp) {
    const bool saves = kind == Kind::kSlowCheckpoint || kind == Kind::kCheckpoint || which < 0.2;
    parts.save_every = saves ? save_every : 0;
    return parts;
  }
  const bool told = NeedsPart(kind);
  if (Drafts(kind) || (!told && which < 0.15)) {
    parts.drafts = drafts;
    parts.accept = accept;
  } else if (kind == Kind::kKvTransfer || kind == Kind::kDisaggregated ||
             (!told && !NeedsOwnPrompts(kind) && which < 0.27)) {
    parts.kv = KvSource::kPrefill;
  } else if (kind == Kind::kSlowTier || kind == Kind::kTier || (!told && !NeedsOwnPrompts(kind) && which < 0.39)) {
    parts.kv = KvSource::kTier;
  }
  return parts;
}

double MeanAccepted(const Parts& parts) {
  double tokens = 1;
  for (int k = 1; k <= parts.drafts; ++k) tokens += std::pow(parts.accept, k);
  return tokens;
}

const KvLink::Fetched& KvLink::Fetch(int64_t tokens, Nanos now) {
  Fetched fetched;
  fetched.bytes = tokens * token_bytes_;
  fetched.begin = std::max(now + latency_, free_);
  const double time = static_cast<double>(fetched.bytes) / speed_ * slower_ * (0.9 + 0.3 * rng_.Unit());
  fetched.end = free_ = fetched.begin + static_cast<Nanos>(time);
  fetched.broken = rng_.Unit() < broken_;
  all_.push_back(fetched);
  return all_.back();
}

int64_t KvLink::Moved(Nanos from, Nanos to) const {
  double bytes = 0;
  for (size_t k = all_.size(); k-- > 0;) {
    const Fetched& f = all_[k];
    if (f.end <= from) break;  // transfers follow one another
    const Nanos inside = std::min(to, f.end) - std::max(from, f.begin);
    if (inside > 0)
      bytes += static_cast<double>(f.bytes) * static_cast<double>(inside) / static_cast<double>(f.end - f.begin);
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace teller::inject::sim
