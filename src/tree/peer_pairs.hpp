#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tree/collective_match.hpp"

namespace teller::tree {

/// Which end of a point-to-point transfer a span is.
enum class PeerEnd : uint8_t { kNone = 0, kSend = 1, kReceive = 2, kEither = 3 };

/// From the name: gloo:send, gloo:recv, c10d::send, c10d::recv_ (with recvAnySource) and NCCL's SendRecv kernels, which
/// are one, the other or both.
PeerEnd PeerEndOf(std::string_view name);
/// The same of a span; of a SendRecv kernel what its args call it, where they do.
PeerEnd PeerEndOf(const trace::Store& store, uint32_t span);

/// Pairs the transfers of a run; `ranks` are the spans of one family (one library). Where every one names its peer, the
/// n-th send of one rank to another meets the n-th receive there. Else of two ranks the n-th send of one meets the n-th
/// receive of the other. Among more, peers are not recorded: a send and a receive are a pair when they overlap and end
/// together as far as the clocks of `trees` tell, and two ranks are peers when that happens several times more often
/// than spans of that density would by chance. Each span is in one pair at most; what finds no peer is in none.
std::vector<MatchedGroup> FindPairs(const trace::Store& store, const trace::Trees& trees,
                                    const std::vector<RankSpans>& ranks);

}  // namespace teller::tree
