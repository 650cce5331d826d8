#pragma once

#include <string>
#include <vector>

#include "inject/sim/faults.hpp"
#include "inject/sim/records.hpp"

namespace teller::inject::sim {

/// Which processes a service has.
struct Processes {
  int front = 0;             ///< API server, tokenizer
  int engine = 0;            ///< scheduler
  std::vector<int> workers;  ///< one a rank
};

/// Writes what the processes of one service log, in the grammar of their engine: one log for a server, one a rank for
/// FSDP, and the kernel's. Threads: confined.
class ServiceLog {
 public:
  ServiceLog(Layout layout, Processes processes, uint64_t seed);

  void StartUp(Nanos at);
  void Step(Nanos at, int replica, const Batch& batch, const Scheduler& scheduler, Nanos elapsed, bool graph);
  void Statistics(Nanos at, int replica, const Scheduler& scheduler, double prompt_rate, double token_rate);
  void Accepted(const Request& request);
  void Finished(const Request& request);
  void Refused(Nanos at, int64_t tokens);
  void Retracted(Nanos at, const Batch& batch);
  void Compiled(Nanos at, int rank);
  void Profiler(Nanos begin, Nanos end, bool start);
  void ShutDown(Nanos at);
  void Xid(Nanos at, int device, int number, const std::string& text);
  /// A rank dies; what the others say follows.
  void Death(Kind kind, Nanos at, int rank);
  /// A collective never ends. `rank` is the one that is elsewhere; -1 = all are stuck in the first one.
  void Hang(Nanos at, int rank);
  void Path(Nanos at, bool slow);
  void Fsdp(Nanos at, const std::string& text);

  base::Status Write(const std::string& folder, double late);

 private:
  int Port() { return 30000 + static_cast<int>(rng_.Below(30000)); }
  void Front(Nanos at, const std::string& text) { Main().Add(at, text); }
  std::string Vllm(Nanos at, const char* process, int pid, const char* level, const char* place) const;
  std::string WorkerName(int rank) const;
  void Traceback(Nanos at, int rank, const std::vector<std::string>& lines);
  LogFile& Main() { return logs_.front(); }
  LogFile& Of(int rank) { return logs_[layout_.engine == Engine::kFsdp ? rank : 0]; }

  Layout layout_;
  Processes processes_;
  base::Rng rng_;
  std::vector<LogFile> logs_;
  LogFile kernel_;
  int iteration_ = 0;
  int decodes_ = 0;
  int64_t decoded_ = 0;
  Nanos last_ = 0;
};

}  // namespace teller::inject::sim
