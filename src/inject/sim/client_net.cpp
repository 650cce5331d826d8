#include "inject/sim/client_net.hpp"

#include <algorithm>

namespace teller::inject::sim {

namespace {

using base::kMicro;
using base::kMilli;

constexpr Nanos kTimeout = 200 * kMilli;  // of TCP before it sends again without a hint
constexpr double kHinted = 0.7;           // share of first losses that later packets give away soon

}  // namespace

Nanos ClientNet::Way(Nanos sent) {
  Nanos at = sent + delay_ + static_cast<Nanos>((150 + 350 * rng_.Unit()) * kMicro);
  if (loss_ <= 0) return at;
  Nanos timeout = kTimeout;
  for (int again = 0; again < 6 && rng_.Unit() < loss_; ++again) {
    const bool soon = again == 0 && rng_.Unit() < kHinted;
    at += soon ? static_cast<Nanos>((15 + 25 * rng_.Unit()) * kMilli) : timeout;
    if (!soon) timeout *= 2;
  }
  return at;
}

void ClientNet::Deliver(Request& request) {
  while (request.gone == 0 && request.seen.size() < request.tokens.size()) {
    const Nanos last = request.seen.empty() ? request.send : request.seen.back();
    const Nanos sent = request.tokens[request.seen.size()];
    const Nanos at = std::max(last, Way(sent));
    if (reset_ > 0 && rng_.Unit() < reset_)
      request.gone = sent + static_cast<Nanos>((1 + rng_.Unit()) * kMilli);
    else if (at - last > kPatience)
      request.gone = Way(last + kPatience);
    else
      request.seen.push_back(at);
  }
}

}  // namespace teller::inject::sim
