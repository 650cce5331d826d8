#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trace/types.hpp"

namespace teller::trace {

/// Who wrote a line of an NCCL log: its prefix "host:pid:tid [device]". The device counts within the process, it is no
/// rank.
struct NcclWriter {
  StringId host;
  int64_t pid = 0;
  int64_t tid = 0;
  int32_t device = -1;  ///< -1 when not told
};

/// How two ranks of a communicator exchange data.
enum class Transport : uint8_t {
  kOther = 0,
  kP2p = 1,     ///< GPU to GPU, over NVLink or PCIe
  kShm = 2,     ///< staged through host memory of one host
  kNet = 3,     ///< InfiniBand, RoCE or a vendor's plugin
  kSocket = 4,  ///< TCP
};

/// One rank of a communicator, by the line with which it joined.
struct CommRank {
  int rank = -1;
  std::string host;
  int64_t pid = -1;
  int32_t device = -1;  ///< CUDA device within its process
  std::string bus_id;   ///< as NCCL writes it, lower case ("17000" is 0000:17:00.0); empty when not told
  std::string network;  ///< "IB", "Socket", a plugin; empty when not told
  double init_s = -1;   ///< how long joining took; -1 when not told
  double bootstrap_s = -1;
  LogRow line;
};

/// The connection from one rank to another, as its channels tell.
struct CommPeer {
  int from = -1;
  int to = -1;
  char side = ' ';  ///< 's' the sender's line, 'r' the receiver's, ' ' of transports that have one line only
  Transport transport = Transport::kOther;
  bool gdr = false;       ///< the NIC reads and writes GPU memory itself
  std::string via;        ///< as written: "P2P/CUMEM/read", "NET/IB/0/GDRDMA"
  uint32_t channels = 0;  ///< lines that say so
  LogRow line;            ///< the first of them
};

/// One link of the machine as NCCL sees it, from one host's topology.
struct TopologyLink {
  std::string host;
  std::string from;  ///< node nearer to the root: "CPU/0", "PCI/15000", "GPU/17000", "NVS/0"
  std::string to;
  std::string kind;  ///< "NVL", "PCI", "SYS", "NET", "C2C", "XGMI" ...
  double gbs = 0;    ///< GB/s that NCCL counts on
  LogRow line;
};

/// A remark about a path that NCCL does not use, counted.
struct CommNotice {
  std::string host;
  std::string text;
  uint32_t count = 0;
  LogRow line;
};

/// One NCCL communicator, put together from the lines of all its ranks. -1 and empty where nothing tells.
struct Communicator {
  std::string id;  ///< "0x54fe282d32a87d85", or a name made from parent and color; empty when no line names it
  int nranks = -1;
  std::vector<CommRank> ranks;                  ///< order: by rank
  std::vector<CommPeer> peers;                  ///< order: by (from, to, side, via)
  std::vector<TopologyLink> links;              ///< of each host the fullest tree that a rank printed, in its order
  std::vector<std::string> rings;               ///< distinct orders of ranks, "0 1 3 2"
  std::vector<std::pair<int, int>> tree_edges;  ///< distinct (parent, child)
  std::vector<CommNotice> notices;
  int channels = -1;  ///< collective channels
  int p2p_channels = -1;
  int p2p_channels_per_peer = -1;
  int nvls_channels = -1;
  double max_gbs = -1;    ///< largest bandwidth between two GPUs
  double total_gbs = -1;  ///< of one GPU
  double ring_gbs = -1;   ///< of all rings together, by NCCL's own search
  double tree_gbs = -1;

  const CommRank* Find(int rank) const {
    for (const auto& r : ranks) {
      if (r.rank == rank) return &r;
    }
    return nullptr;
  }
};

}  // namespace teller::trace
