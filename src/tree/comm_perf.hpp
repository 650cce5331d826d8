#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "trace/store.hpp"

namespace teller::tree {

/// One call of a collective over the ranks that measured it: rows of Store::comm_perf, shortest time first.
struct MeasuredCall {
  int64_t sequence = -1;
  std::vector<uint32_t> rows;
};

/// All calls of one operation with one size in one communicator.
struct MeasuredOp {
  trace::StringId op;
  int64_t bytes = -1;
  std::vector<MeasuredCall> calls;  ///< order: by sequence
  double bus_gbs = 0;               ///< median over the calls of the last rank to come, whose time holds no wait
};

/// One communicator that NCCL Inspector measured.
struct MeasuredComm {
  trace::StringId comm;
  int32_t nranks = -1;
  int32_t nodes = -1;
  std::map<int32_t, uint32_t> ranks;               ///< rank -> one of its rows
  std::vector<MeasuredOp> ops;                     ///< collectives; order: by op, bytes
  std::map<int32_t, std::vector<uint32_t>> sends;  ///< sends and receives by the rank that measured
};

/// Matches measurements over ranks by communicator, operation and sequence number. Order: by first row.
std::vector<MeasuredComm> MatchMeasurements(const trace::Store& store);

/// Ranks of the measuring processes in the job: those in the largest communicator that each is in.
class WorldRanks {
 public:
  explicit WorldRanks(const trace::Store& store);
  int Of(const trace::CommPerf& perf) const;

 private:
  using Key = std::tuple<trace::StringId, int64_t, trace::FileRow>;  // host, pid, file
  std::map<Key, std::pair<int32_t, int32_t>> widest_;                // size and rank
};

}  // namespace teller::tree
