#include "tree/comm_perf.hpp"

#include <algorithm>
#include <tuple>

namespace teller::tree {

namespace {

using trace::CommPerf;

double MedianBandwidth(const trace::Store& store, const MeasuredOp& op) {
  std::vector<double> values;
  for (const auto& call : op.calls) values.push_back(store.comm_perf[call.rows.front()].bus_gbs);
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace

std::vector<MeasuredComm> MatchMeasurements(const trace::Store& store) {
  using CommKey = std::pair<uint32_t, int32_t>;
  using OpKey = std::tuple<uint32_t, int64_t>;
  std::vector<MeasuredComm> out;
  std::map<CommKey, size_t> known;
  std::vector<std::map<OpKey, std::map<int64_t, std::map<int32_t, uint32_t>>>> calls;
  for (uint32_t row = 0; row < store.comm_perf.size(); ++row) {
    const CommPerf& perf = store.comm_perf[row];
    const auto [it, added] = known.emplace(CommKey(perf.comm.value(), perf.nranks), out.size());
    if (added) {
      out.push_back({perf.comm, perf.nranks, perf.nodes, {}, {}, {}});
      calls.emplace_back();
    }
    MeasuredComm& comm = out[it->second];
    comm.ranks.emplace(perf.rank, row);
    if (perf.peer >= 0) {
      comm.sends[perf.rank].push_back(row);
    } else {
      calls[it->second][{perf.op.value(), perf.bytes}][perf.sequence].emplace(perf.rank, row);
    }
  }
  for (size_t i = 0; i < out.size(); ++i) {
    for (const auto& [key, by_sequence] : calls[i]) {
      MeasuredOp op;
      op.op = trace::StringId(std::get<0>(key));
      op.bytes = std::get<1>(key);
      for (const auto& [sequence, by_rank] : by_sequence) {
        MeasuredCall call{sequence, {}};
        for (const auto& [rank, row] : by_rank) call.rows.push_back(row);
        std::stable_sort(call.rows.begin(), call.rows.end(), [&](uint32_t a, uint32_t b) {
          return store.comm_perf[a].duration < store.comm_perf[b].duration;
        });
        op.calls.push_back(std::move(call));
      }
      op.bus_gbs = MedianBandwidth(store, op);
      out[i].ops.push_back(std::move(op));
    }
    std::sort(out[i].ops.begin(), out[i].ops.end(), [&](const MeasuredOp& a, const MeasuredOp& b) {
      return std::tuple(store.text(a.op), a.bytes) < std::tuple(store.text(b.op), b.bytes);
    });
  }
  return out;
}

WorldRanks::WorldRanks(const trace::Store& store) {
  for (const auto& perf : store.comm_perf) {
    auto& widest = widest_.emplace(Key(perf.host, perf.pid, perf.file), std::pair(-2, -1)).first->second;
    if (perf.nranks > widest.first) widest = {perf.nranks, perf.rank};
  }
}

int WorldRanks::Of(const CommPerf& perf) const {
  const auto it = widest_.find(Key(perf.host, perf.pid, perf.file));
  return it == widest_.end() ? perf.rank : it->second.second;
}

}  // namespace teller::tree
