// Which links stand out, on graphs that are uneven by design and on ones that should be even.
#include "locate/topology_odd.hpp"

#include <gtest/gtest.h>

#include <random>

namespace teller::locate {
namespace {

std::string Gpu(int i) {
  return "GPU/" + std::to_string(i + 1) + "000";
}

/// A host with `gpus` GPUs on one root; `link(a, b)` gives GB/s of each pair, 0 = none.
template <class Link>
HostLinks Host(int gpus, Link link, const std::string& name = "h") {
  HostLinks host{name, {}};
  uint32_t row = 0;
  for (int a = 0; a < gpus; ++a) {
    host.links.push_back({name, "CPU/0", Gpu(a), "PCI", 24, trace::LogRow(row++)});
    for (int b = 0; b < gpus; ++b) {
      const double gbs = a == b ? 0 : link(std::min(a, b), std::max(a, b));
      if (gbs > 0) host.links.push_back({name, Gpu(a), Gpu(b), "NVL", gbs, trace::LogRow(row++)});
    }
  }
  return host;
}

TEST(TopologyOdd, EveryWeakPairOfAMeshIsFound) {
  for (const int n : {4, 5, 8, 16}) {
    for (int a = 0; a < n; ++a) {
      for (int b = a + 1; b < n; ++b) {
        for (const double weak : {0.0, 40.0, 75.0}) {
          const auto odd = FindOddLinks(Host(n, [&](int x, int y) { return x == a && y == b ? weak : 80.0; }));
          ASSERT_EQ(odd.size(), 1u) << n << " " << a << " " << b;
          EXPECT_EQ(std::minmax(odd[0].a, odd[0].b), std::minmax(Gpu(a), Gpu(b)));
          EXPECT_EQ(odd[0].gbs, weak);
          EXPECT_EQ(odd[0].normal, 80.0);
          EXPECT_EQ(odd[0].line.valid(), weak > 0);
          EXPECT_TRUE(odd[0].sibling.valid());
        }
      }
    }
  }
}

TEST(TopologyOdd, WhatIsUnevenInMoreThanOnePlaceIsADesign) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 500; ++trial) {
    const int n = 4 + static_cast<int>(random() % 5);
    std::map<std::pair<int, int>, double> speeds;
    size_t other = 0;
    for (int a = 0; a < n; ++a) {
      for (int b = a + 1; b < n; ++b) {
        const double speed = static_cast<double>(random() % 3) * 20;
        speeds[{a, b}] = speed;
        other += speed != 40 ? 1 : 0;
      }
    }
    if (other < 2) continue;
    bool one_low = false;  // all at the top speed but one
    double top = 0;
    for (const auto& [ends, speed] : speeds) top = std::max(top, speed);
    size_t below = 0;
    for (const auto& [ends, speed] : speeds) below += speed < top ? 1 : 0;
    one_low = below == 1;
    // Pairs of bridges are judged among themselves; a random graph on few GPUs has too few of them.
    const auto odd = FindOddLinks(Host(n, [&](int a, int b) { return speeds[{a, b}]; }));
    EXPECT_EQ(odd.size(), one_low ? 1u : 0u);
  }
}

TEST(TopologyOdd, TooFewToCompareIsNoContrast) {
  for (const int n : {1, 2, 3}) {
    EXPECT_TRUE(FindOddLinks(Host(n, [](int a, int b) { return a == 0 && b == 1 ? 40.0 : 80.0; })).empty());
  }
}

TEST(TopologyOdd, AHostIsComparedWithItsTwinsOnly) {
  const auto pair = [](double gbs) { return [gbs](int, int) { return gbs; }; };
  std::vector<HostLinks> hosts = {Host(2, pair(240), "a"), Host(2, pair(240), "b"), Host(2, pair(120), "c")};
  auto odd = FindOddHosts(hosts);
  ASSERT_EQ(odd.size(), 1u);
  EXPECT_EQ(odd[0].host, "c");
  hosts.pop_back();
  EXPECT_TRUE(FindOddHosts(hosts).empty());
  hosts.push_back(Host(3, pair(120), "c"));  // another machine
  EXPECT_TRUE(FindOddHosts(hosts).empty());
  hosts = {Host(2, pair(240), "a"), Host(2, pair(120), "b"), Host(2, pair(120), "c"), Host(2, pair(240), "d")};
  EXPECT_TRUE(FindOddHosts(hosts).empty());
}

}  // namespace
}  // namespace teller::locate
