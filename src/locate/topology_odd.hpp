#pragma once

#include <string>
#include <vector>

#include "trace/comm_topology.hpp"

namespace teller::locate {

/// A link that is worse than all that should be like it.
struct OddLink {
  std::string host;
  std::string a;      ///< node name, "GPU/17000"
  std::string b;      ///< the other end; "NVS/0" for a switch, "CPU/0" for the way to the host
  std::string kind;   ///< "NVL", "XGMI", "PCI"
  double gbs = 0;     ///< 0 = the link is not there
  double normal = 0;  ///< of its siblings
  size_t siblings = 0;
  trace::LogRow line;     ///< invalid when the link is not there
  trace::LogRow sibling;  ///< of one that is as it should be
};

/// The links of one host, from one communicator's view of it.
struct HostLinks {
  std::string host;
  std::vector<trace::TopologyLink> links;
  std::vector<std::string> Gpus() const;  ///< node names, sorted
};
std::vector<HostLinks> LinksByHost(const trace::Communicator& comm);

/// True when the host's GPUs are joined by links of their own, but not each with each and not by a switch: then some
/// pairs are worse than others by design.
bool HasPartialFabric(const HostLinks& host);
bool HasFabricLink(const HostLinks& host, const std::string& a, const std::string& b);

/// Links that break a host's symmetry: one GPU's way into a switch, one pair of a full mesh or of at least four bridged
/// pairs, one GPU's way over PCIe. At least three siblings must agree exactly; nothing is said where the design itself
/// is uneven, such as subsets of a cube mesh.
std::vector<OddLink> FindOddLinks(const HostLinks& host);

/// Links that are worse on one host than on at least two others whose GPUs stand at the same addresses.
std::vector<OddLink> FindOddHosts(const std::vector<HostLinks>& hosts);

}  // namespace teller::locate
