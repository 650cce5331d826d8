#pragma once

#include <cstdint>

namespace teller::tpe {

/// The array of tokens in place: slot i belongs to node i. The first slot of a token holds its id. The others are dead
/// and hold kDead, the last of them with the token's number of nodes, so that the token before a position is found
/// without a list.
namespace slots {

inline constexpr uint32_t kDead = 0x80000000u;
/// Stands between two sequences: no token, no dead slot.
inline constexpr uint32_t kBarrier = 0xFFFFFFFFu;

inline bool IsToken(uint32_t slot) {
  return (slot & kDead) == 0;
}
/// First slot of the token that ends right before `at`; the slot there is no barrier.
inline uint32_t Before(const uint32_t* tokens, uint32_t at) {
  const uint32_t slot = tokens[at - 1];
  return IsToken(slot) ? at - 1 : at - (slot & ~kDead);
}
/// Writes the token `id` over the tokens at `left` and `right`, which end `nodes` after `left`.
inline void Join(uint32_t* tokens, uint32_t left, uint32_t right, uint32_t nodes, uint32_t id) {
  tokens[left] = id;
  tokens[right] = kDead;
  tokens[left + nodes - 1] = kDead | nodes;
}

}  // namespace slots
}  // namespace teller::tpe
