#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/comm_topology.hpp"

namespace teller::ingest::log {

/// What one message of an NCCL log says about communicators and paths. -1 and empty where it does not say.
/// Source: NCCL, src/init.cc, src/graph, src/transport (2.4 to 2.27), and RCCL's copies of them.
struct NcclMessage {
  enum class Kind : uint8_t {
    kNone,
    kInitStart,     ///< "... comm 0x.. rank 0 nranks 8 cudaDev 0 busId 1000 commId 0x.. - Init START"
    kInitComplete,  ///< the same with "Init COMPLETE"; before 2.18 the only one
    kTimings,       ///< "Init timings - ..: rank 0 nranks 8 total 0.67 (.., bootstrap 0.00, ..)"
    kChannel,       ///< "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"
    kRing,          ///< "Channel 00/24 : 0 1 2 3"
    kTrees,         ///< "Trees [0] 1/-1/-1->0->-1 [1] .."
    kCounts,        ///< "24 coll channels, 0 nvls channels, 32 p2p channels, 32 p2p channels per peer"
    kSystem,        ///< "=== System : maxBw 240.0 totalBw 240.0 ==="
    kSystemEnd,     ///< "====="
    kNode,          ///< "+ PCI[24.0] - GPU/0-17000 (0)", "CPU/0-0 (1/1/2)"
    kPattern,       ///< "Pattern 4, crossNic 0, nChannels 12, bw 20.0/20.0, type NVL/PIX, .."
    kNetwork,       ///< "Using network IB"
    kNotice,        ///< a path is not used: GPU Direct RDMA, P2P
  };
  Kind kind = Kind::kNone;

  int rank = -1;
  int nranks = -1;
  int device = -1;
  std::string_view comm;  ///< pointer in its process
  std::string_view bus_id;
  std::string comm_id;      ///< "0x.."
  std::string_view parent;  ///< pointer of the communicator that was split
  std::string_view color;   ///< text of what tells the splits of one parent apart

  int to = -1;
  char side = ' ';
  trace::Transport transport = trace::Transport::kOther;
  bool gdr = false;
  std::string_view text;  ///< via, network, notice, node name, order of a ring

  size_t indent = 0;  ///< column of a node's "+"; only meaningful where `link` is not empty
  std::string_view link;
  double gbs = -1;  ///< of a node's link; maxBw; of all channels of a pattern
  double total_gbs = -1;
  double bootstrap_s = -1;
  double total_s = -1;
  int pattern = -1;
  int channels = -1;
  int p2p_channels = -1;
  int p2p_channels_per_peer = -1;
  int nvls_channels = -1;
  std::vector<std::pair<int, int>> edges;  ///< (parent, child)
};

/// Views point into `message`.
NcclMessage ParseNcclMessage(std::string_view message);

/// "GPU/0-17000", "GPU/17000", "DEV/0-F000" -> "GPU/17000", "GPU/f000": without the number of the system, lower case.
std::string NodeName(std::string_view text);

}  // namespace teller::ingest::log
