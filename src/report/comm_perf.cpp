#include "report/comm_perf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "report/units.hpp"
#include "tree/comm_perf.hpp"

namespace teller::report {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kShown = 8;

/// One rank's part in all calls of one operation.
struct RankPart {
  std::vector<trace::Nanos> durations;
  std::vector<double> bus_gbs;
  size_t last = 0;  ///< calls that all ranks measured in which it came last: its time was the shortest
};

std::map<int32_t, RankPart> PartsOf(const trace::Store& store, const tree::MeasuredComm& comm,
                                    const tree::MeasuredOp& op) {
  std::map<int32_t, RankPart> parts;
  for (const auto& call : op.calls) {
    for (const uint32_t row : call.rows) {
      const auto& perf = store.comm_perf[row];
      parts[perf.rank].durations.push_back(perf.duration);
      parts[perf.rank].bus_gbs.push_back(perf.bus_gbs);
    }
    if (comm.nranks > 1 && static_cast<int32_t>(call.rows.size()) == comm.nranks)
      ++parts[store.comm_perf[call.rows.front()].rank].last;
  }
  return parts;
}

template <class T>
T Median(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

void AddMeasurements(const trace::Store& store, Page& page) {
  if (store.comm_perf.empty()) return;
  page.Gap();
  page.Head(fmt::format("Collectives measured by NCCL Inspector: {}", Count(store.comm_perf.size())));
  const auto comms = tree::MatchMeasurements(store);
  const size_t shown = page.options().all ? comms.size() : std::min(comms.size(), kShown);
  for (size_t i = 0; i < shown; ++i) {
    const auto& comm = comms[i];
    page.Line(2, fmt::format("{}  {} ranks, {} measured", store.text(comm.comm), comm.nranks, comm.ranks.size()));
    const size_t ops = page.options().all ? comm.ops.size() : std::min(comm.ops.size(), kShown);
    for (size_t k = 0; k < ops; ++k) {
      const auto& op = comm.ops[k];
      const auto parts = PartsOf(store, comm, op);
      const auto most = std::max_element(parts.begin(), parts.end(),
                                         [](const auto& a, const auto& b) { return a.second.last < b.second.last; });
      std::string text = fmt::format("{} of {}: {}, bus {:.1f} GB/s", store.text(op.op),
                                     op.bytes < 0 ? "unknown size" : Bytes(static_cast<uint64_t>(op.bytes)),
                                     Count(op.calls.size(), "call"), op.bus_gbs);
      if (most->second.last > 0)
        text += fmt::format(", rank {} came last in {}", most->first, Count(most->second.last));
      page.Paragraph(6, text);
    }
    if (ops < comm.ops.size()) page.Line(6, fmt::format("and {} more", comm.ops.size() - ops), Ink::kDim);
    size_t sends = 0;
    for (const auto& [rank, rows] : comm.sends) sends += rows.size();
    if (sends > 0) page.Line(6, Count(sends, "send or receive"));
  }
  if (shown < comms.size()) page.Line(2, fmt::format("and {} more", comms.size() - shown), Ink::kDim);
}

Json MeasurementsToJson(const trace::Store& store) {
  Json out = Json::array();
  for (const auto& comm : tree::MatchMeasurements(store)) {
    Json ranks = Json::array();
    for (const auto& [rank, row] : comm.ranks) {
      const auto& perf = store.comm_perf[row];
      ranks.push_back({{"rank", rank},
                       {"host", std::string(store.text(perf.host))},
                       {"pid", perf.pid < 0 ? Json(nullptr) : Json(perf.pid)}});
    }
    Json ops = Json::array();
    for (const auto& op : comm.ops) {
      Json parts = Json::array();
      for (const auto& [rank, part] : PartsOf(store, comm, op)) {
        parts.push_back({{"rank", rank},
                         {"calls", part.durations.size()},
                         {"median_ns", Median(part.durations)},
                         {"median_bus_gbs", Median(part.bus_gbs)},
                         {"came_last", part.last}});
      }
      ops.push_back({{"op", std::string(store.text(op.op))},
                     {"bytes", op.bytes < 0 ? Json(nullptr) : Json(op.bytes)},
                     {"calls", op.calls.size()},
                     {"bus_gbs", op.bus_gbs},
                     {"ranks", parts}});
    }
    size_t sends = 0;
    for (const auto& [rank, rows] : comm.sends) sends += rows.size();
    out.push_back({{"id", std::string(store.text(comm.comm))},
                   {"nranks", comm.nranks < 0 ? Json(nullptr) : Json(comm.nranks)},
                   {"nodes", comm.nodes < 0 ? Json(nullptr) : Json(comm.nodes)},
                   {"ranks", ranks},
                   {"ops", ops},
                   {"sends_and_receives", sends}});
  }
  return out;
}

}  // namespace teller::report
