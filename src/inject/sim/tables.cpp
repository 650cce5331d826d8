#include "inject/sim/tables.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/status.hpp"
#include "inject/assets.hpp"

namespace teller::inject::sim {

namespace {

using Json = nlohmann::json;

constexpr std::array<const char*, kRoles> kNames = {
    "embed",        "norm", "gemm_qkv",  "qk_norm", "rope",   "kv_store", "attn",    "gemm_o",
    "gemm_gate_up", "act",  "gemm_down", "route",   "moe_up", "moe_down", "lm_head", "sample",
    "copy",         "",     "",          "",        "",       ""};

/// Parallel products shrink with the part of the weights that a rank holds.
bool IsCut(Role role) {
  switch (role) {
    case Role::kQkv:
    case Role::kProj:
    case Role::kGateUp:
    case Role::kAct:
    case Role::kDown:
    case Role::kExpertUp:
    case Role::kExpertDown:
    case Role::kHead:
    case Role::kRope:
    case Role::kQkNorm:
    case Role::kKvStore:
    case Role::kAttn: return true;
    default: return false;
  }
}

Tables Read() {
  const Json json = Json::parse(assets::kTablesJson);
  Tables tables;
  const auto grid = json["grid"].get<std::vector<double>>();
  const auto list = [&](const Json& values) { return Quantiles{grid, values.get<std::vector<double>>()}; };
  for (size_t role = 0; role < kRoles; ++role) {
    if (*kNames[role] == 0) continue;
    const Json& cost = json["gpu"][kNames[role]];
    tables.cost[role] = {cost["floor_us"], cost.value("per_token_us", 0.0), cost.value("per_context_us", 0.0),
                         cost.value("per_pair_us", 0.0)};
  }
  const Json& spread = json["spread"];
  tables.short_spread = list(spread["short"]);
  tables.long_spread = list(spread["long"]);
  tables.collective_spread = list(spread["collective"]);
  const Json& host = json["host_us"];
  tables.launch = list(host["launch"]);
  tables.launch_ex = list(host["launch_ex"]);
  tables.memcpy = list(host["memcpy"]);
  tables.graph_launch = list(host["graph_launch"]);
  tables.between_launches = list(host["between_launches"]);
  tables.launch_to_start = list(host["launch_to_start"]);
  tables.kernel_to_kernel = list(host["kernel_to_kernel"]);
  tables.between_steps_vllm = list(host["between_steps_vllm"]);
  tables.between_steps_sglang = list(host["between_steps_sglang"]);
  const Json& collective = json["collective"];
  tables.end_spread = list(collective["end_spread_us"]);
  tables.collective_latency = collective["latency_us"];
  tables.node_per_byte = collective["node_us_per_byte"];
  tables.network_per_byte = collective["network_us_per_byte"];
  return tables;
}

}  // namespace

double Quantiles::Draw(Rng& rng) const {
  const double u = rng.Unit();
  size_t k = 1;
  while (k + 1 < grid.size() && grid[k] < u) ++k;
  const double part = (u - grid[k - 1]) / (grid[k] - grid[k - 1]);
  return values[k - 1] + std::clamp(part, 0.0, 1.0) * (values[k] - values[k - 1]);
}

double Quantiles::Median() const {
  return values[grid.size() / 2 - 1];
}

double Tables::Typical(Role role, const Shape& shape, int parts) const {
  const Cost& c = cost[static_cast<size_t>(role)];
  const auto tokens =
      static_cast<double>(role == Role::kHead || role == Role::kSample ? shape.sequences : shape.tokens);
  const double work =
      c.token * tokens + c.context * static_cast<double>(shape.context) + c.pair * static_cast<double>(shape.pairs);
  const double cut = IsCut(role) ? parts : 1;
  // Reading the weights and computing overlap; a soft maximum of both. Launching a kernel alone takes about 2 us.
  const double floor = std::max(2.0, c.floor / cut);
  const double busy = work / cut;
  return std::pow(std::pow(floor, 4) + std::pow(busy, 4), 0.25);
}

const Tables& StandardTables() {
  static const Tables kTables = Read();
  return kTables;
}

}  // namespace teller::inject::sim
