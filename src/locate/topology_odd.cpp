#include "locate/topology_odd.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "locate/log_text.hpp"

namespace teller::locate {

namespace {

using trace::TopologyLink;
using Pair = std::pair<std::string, std::string>;

constexpr size_t kLeastSiblings = 3;
constexpr double kSame = 0.02;      // figures of one design are equal but for rounding
constexpr double kPciLower = 0.75;  // a narrower or slower slot has at most half
constexpr double kLower = 0.95;
constexpr size_t kMaxGpus = 64;  // of one host; more is no host that NCCL knows
constexpr int kMaxDepth = 64;

bool IsGpu(const std::string& node) {
  return Begins(node, "GPU/");
}
bool IsSwitch(const std::string& node) {
  return Begins(node, "NVS/");
}
bool IsFabric(const std::string& kind) {
  return kind == "NVL" || kind == "XGMI";
}
bool Same(double a, double b) {
  return std::abs(a - b) <= kSame * std::max(a, b);
}

Pair Ends(const std::string& a, const std::string& b) {
  return a < b ? Pair(a, b) : Pair(b, a);
}

/// Links of GPUs among themselves and into a switch.
struct Fabric {
  std::map<Pair, const TopologyLink*> pairs;
  std::map<std::string, const TopologyLink*> to_switch;
};

Fabric FabricOf(const HostLinks& host) {
  Fabric out;
  for (const auto& link : host.links) {
    if (!IsFabric(link.kind)) continue;
    if (IsGpu(link.from) && IsGpu(link.to)) out.pairs.emplace(Ends(link.from, link.to), &link);
    if (IsGpu(link.from) && IsSwitch(link.to)) out.to_switch.emplace(link.from, &link);
  }
  return out;
}

/// The one entry that is worse than all the others, which agree. `missing` are keys that should have an entry.
template <class Key>
bool FindOdd(const std::map<Key, std::pair<double, const TopologyLink*>>& values, const std::vector<Key>& missing,
             double lower, Key& key, OddLink& out) {
  const size_t all = values.size() + missing.size();
  if (all < kLeastSiblings + 1 || missing.size() > 1) return false;
  double normal = 0;
  for (const auto& [k, value] : values) normal = std::max(normal, value.first);
  const TopologyLink* sibling = nullptr;
  size_t odd = missing.size();
  if (!missing.empty()) key = missing.front();
  for (const auto& [k, value] : values) {
    if (Same(value.first, normal)) {
      if (sibling == nullptr) sibling = value.second;
      continue;
    }
    ++odd;
    key = k;
    out.gbs = value.first;
    out.line = value.second->line;
    out.kind = value.second->kind;
  }
  if (odd != 1 || sibling == nullptr || out.gbs > lower * normal) return false;
  out.normal = normal;
  out.siblings = all - 1;
  out.sibling = sibling->line;
  if (out.kind.empty()) out.kind = sibling->kind;
  return true;
}

void FindOddSwitchWay(const HostLinks& host, const Fabric& fabric, std::vector<OddLink>& out) {
  std::map<std::string, std::pair<double, const TopologyLink*>> values;
  std::vector<std::string> missing;
  std::string node;
  for (const auto& gpu : host.Gpus()) {
    const auto it = fabric.to_switch.find(gpu);
    if (it == fabric.to_switch.end()) {
      missing.push_back(gpu);
    } else {
      values[gpu] = {it->second->gbs, it->second};
      node = it->second->to;
    }
  }
  OddLink odd;
  if (!FindOdd(values, missing, kLower, odd.a, odd)) return;
  odd.host = host.host;
  odd.b = node;
  out.push_back(std::move(odd));
}

/// Each GPU with each, or each with exactly one partner.
void FindOddPair(const HostLinks& host, const Fabric& fabric, std::vector<OddLink>& out) {
  const auto gpus = host.Gpus();
  std::map<Pair, std::pair<double, const TopologyLink*>> values;
  std::map<std::string, int> partners;
  for (const auto& [ends, link] : fabric.pairs) {
    values[ends] = {link->gbs, link};
    ++partners[ends.first];
    ++partners[ends.second];
  }
  const bool bridges = std::all_of(partners.begin(), partners.end(), [](const auto& p) { return p.second == 1; });
  std::vector<Pair> missing;
  if (bridges) {
    std::vector<std::string> alone;
    for (const auto& gpu : gpus) {
      if (partners.count(gpu) == 0) alone.push_back(gpu);
    }
    if (alone.size() == 2) missing.push_back(Ends(alone[0], alone[1]));
    if (alone.size() != 0 && alone.size() != 2) return;
  } else {
    for (size_t i = 0; i < gpus.size(); ++i) {
      for (size_t k = i + 1; k < gpus.size(); ++k) {
        if (values.count({gpus[i], gpus[k]}) == 0) missing.emplace_back(gpus[i], gpus[k]);
      }
    }
  }
  OddLink odd;
  Pair ends;
  if (gpus.size() < 4 || !FindOdd(values, missing, kLower, ends, odd)) return;
  odd.host = host.host;
  std::tie(odd.a, odd.b) = ends;
  out.push_back(std::move(odd));
}

/// The narrowest place between a GPU and its host.
void FindOddPcie(const HostLinks& host, std::vector<OddLink>& out) {
  std::map<std::string, const TopologyLink*> above;
  for (const auto& link : host.links) {
    if (link.kind == "PCI") above.emplace(link.to, &link);
  }
  std::map<std::string, std::pair<double, const TopologyLink*>> values;
  std::vector<std::string> missing;
  for (const auto& gpu : host.Gpus()) {
    const TopologyLink* narrowest = nullptr;
    std::string node = gpu;
    for (int depth = 0; depth < kMaxDepth; ++depth) {
      const auto it = above.find(node);
      if (it == above.end()) break;
      if (narrowest == nullptr || it->second->gbs < narrowest->gbs) narrowest = it->second;
      node = it->second->from;
    }
    if (narrowest == nullptr) return;  // GPUs that hang on something else
    values[gpu] = {narrowest->gbs, narrowest};
  }
  OddLink odd;
  if (!FindOdd(values, missing, kPciLower, odd.a, odd)) return;
  odd.host = host.host;
  odd.b = values[odd.a].second->from;
  out.push_back(std::move(odd));
}

}  // namespace

std::vector<std::string> HostLinks::Gpus() const {
  std::set<std::string> gpus;
  for (const auto& link : links) {
    if (IsGpu(link.from)) gpus.insert(link.from);
    if (IsGpu(link.to)) gpus.insert(link.to);
  }
  return {gpus.begin(), gpus.end()};
}

std::vector<HostLinks> LinksByHost(const trace::Communicator& comm) {
  std::vector<HostLinks> out;
  for (const auto& link : comm.links) {
    auto it = std::find_if(out.begin(), out.end(), [&](const HostLinks& h) { return h.host == link.host; });
    if (it == out.end()) it = out.insert(out.end(), HostLinks{link.host, {}});
    it->links.push_back(link);
  }
  return out;
}

bool HasPartialFabric(const HostLinks& host) {
  const Fabric fabric = FabricOf(host);
  const size_t n = host.Gpus().size();
  return fabric.to_switch.empty() && !fabric.pairs.empty() && fabric.pairs.size() < n * (n - 1) / 2;
}

bool HasFabricLink(const HostLinks& host, const std::string& a, const std::string& b) {
  return FabricOf(host).pairs.count(Ends(a, b)) > 0;
}

std::vector<OddLink> FindOddLinks(const HostLinks& host) {
  std::vector<OddLink> out;
  if (host.Gpus().size() > kMaxGpus) return out;
  const Fabric fabric = FabricOf(host);
  if (!fabric.to_switch.empty()) {
    FindOddSwitchWay(host, fabric, out);
  } else if (!fabric.pairs.empty()) {
    FindOddPair(host, fabric, out);
  }
  FindOddPcie(host, out);
  return out;
}

std::vector<OddLink> FindOddHosts(const std::vector<HostLinks>& hosts) {
  std::map<std::vector<std::string>, std::vector<const HostLinks*>> alike;
  for (const auto& host : hosts) alike[host.Gpus()].push_back(&host);
  std::vector<OddLink> out;
  for (const auto& [gpus, group] : alike) {
    if (gpus.size() < 2 || gpus.size() > kMaxGpus || group.size() < kLeastSiblings) continue;
    using Key = std::tuple<std::string, std::string, std::string>;  // kind and ends
    std::map<Key, std::map<std::string, std::pair<double, const TopologyLink*>>> by_link;
    for (const auto* host : group) {
      for (const auto& link : host->links) {
        if (!IsGpu(link.to) && !IsGpu(link.from)) continue;
        if (!IsFabric(link.kind) && link.kind != "PCI") continue;
        if (IsGpu(link.from) && IsGpu(link.to) && link.to < link.from) continue;  // the same link from its other end
        by_link[{link.kind, link.from, link.to}].emplace(host->host, std::pair(link.gbs, &link));
      }
    }
    for (const auto& [key, values] : by_link) {
      std::vector<std::string> missing;
      for (const auto* host : group) {
        if (values.count(host->host) == 0) missing.push_back(host->host);
      }
      double normal = 0;
      for (const auto& [host, value] : values) normal = std::max(normal, value.first);
      std::vector<std::string> odd = missing;
      const TopologyLink* sibling = nullptr;
      for (const auto& [host, value] : values) {
        if (!Same(value.first, normal)) odd.push_back(host);
        if (Same(value.first, normal)) sibling = value.second;
      }
      const auto& [kind, from, to] = key;
      if (odd.size() != 1 || (!missing.empty() && kind == "PCI")) continue;
      OddLink link{odd.front(), from, to, kind, 0, normal, group.size() - 1, {}, sibling->line};
      if (const auto it = values.find(odd.front()); it != values.end()) {
        link.gbs = it->second.first;
        link.line = it->second.second->line;
      }
      if (link.gbs <= (kind == "PCI" ? kPciLower : kLower) * normal) out.push_back(std::move(link));
    }
  }
  return out;
}

}  // namespace teller::locate
