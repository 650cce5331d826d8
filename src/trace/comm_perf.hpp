#pragma once

#include <cstdint>

#include "trace/types.hpp"

namespace teller::trace {

/// One rank's measurement of one finished collective, send or receive (NCCL Inspector). A collective's time on a rank
/// includes its wait for the ranks that come later, so that the last one to come has the shortest time.
struct CommPerf {
  FileRow file;
  uint32_t line = 0;  ///< from 1
  StringId comm;      ///< communicator, equal on all its ranks; none when not told
  StringId host;
  StringId op;      ///< "AllReduce", "Send" ...
  StringId algo;    ///< "RING", "TREE"; none before format 4.1
  StringId timing;  ///< what was measured: "kernel_gpu", "kernel_cpu", "collective_cpu"; none when not told
  int64_t pid = -1;
  int64_t sequence = -1;  ///< counts the calls of one op in one communicator
  int64_t bytes = -1;
  Nanos duration = 0;
  Nanos at = kNoTime;  ///< when it was written out, some time after its end
  double algo_gbs = 0;
  double bus_gbs = 0;
  int32_t rank = -1;  ///< in the communicator
  int32_t nranks = -1;
  int32_t nodes = -1;
  int32_t peer = -1;  ///< of sends and receives; -1 for collectives
};

}  // namespace teller::trace
