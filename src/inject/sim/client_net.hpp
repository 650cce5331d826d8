#pragma once

#include "inject/sim/scheduler.hpp"

namespace teller::inject::sim {

/// The network between clients and the server. Lost packets are sent again, first soon, then after a time that doubles;
/// tokens that were sent later wait for them. Threads: confined.
class ClientNet {
 public:
  static constexpr Nanos kPatience = 1500 * base::kMilli;  ///< so long a client waits for the next token

  explicit ClientNet(uint64_t seed) : rng_(seed) {}
  /// A share of packets is lost, a share of tokens finds its connection reset, all come later.
  void Disturb(double loss, double reset, Nanos delay) {
    loss_ = loss;
    reset_ = reset;
    delay_ = delay;
  }
  /// When a packet that was sent now is there.
  Nanos Way(Nanos sent);
  /// Brings the request's new tokens to its client. A client that waited too long or was cut off is gone.
  void Deliver(Request& request);

 private:
  base::Rng rng_;
  double loss_ = 0;
  double reset_ = 0;
  Nanos delay_ = 0;
};

}  // namespace teller::inject::sim
