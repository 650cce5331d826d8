#pragma once

#include <string>
#include <vector>

#include "inject/label.hpp"
#include "inject/sim/faults.hpp"
#include "inject/sim/records.hpp"

namespace teller::inject::sim {

/// Which processes a service has.
struct Processes {
  int front = 0;             ///< API server, tokenizer
  int engine = 0;            ///< scheduler
  std::vector<int> workers;  ///< one a rank
};

/// The first line that something left: when it was written, and its text without what its process puts before it.
struct FirstLine {
  Nanos at = 0;
  std::string text;
};

/// Writes what the processes of one service log, in the grammar of their engine: one log for a server, one a rank for
/// FSDP, and the kernel's. What can be the work of a fault says which line it left first. Threads: confined.
class ServiceLog {
 public:
  ServiceLog(Layout layout, Parts parts, Processes processes, uint64_t seed);

  /// The service starts and is ready shortly before `at`; reading the weights takes `load` seconds. When it read them.
  Interval StartUp(Nanos at, double load);
  void Step(Nanos at, int replica, const Batch& batch, const Scheduler& scheduler, Nanos elapsed, bool graph);
  /// The periodic line of one replica: what was counted since `before`. `link` brought its keys.
  void Statistics(const Sample& now, const Sample& before, const KvLink* link);
  void Accepted(const Request& request);
  void Finished(const Request& request);
  FirstLine Aborted(const Request& request);
  /// Keys of a request never came.
  FirstLine KeysLost(const Request& request);
  /// FSDP: every rank wrote its share of a checkpoint.
  void Saved(Nanos at, int step, int64_t bytes, const std::vector<Nanos>& writes);
  FirstLine Refused(Nanos at, int64_t tokens);
  /// vLLM says nothing: the text is empty.
  FirstLine Retracted(Nanos at, const Batch& batch);
  FirstLine Compiled(Nanos at, int rank);
  void Profiler(Nanos begin, Nanos end, bool start);
  void ShutDown(Nanos at);
  /// The driver's line about the GPU of a rank.
  FirstLine Xid(Nanos at, int rank, int number, const std::string& text);
  /// A rank dies; what the others say follows.
  FirstLine Death(Kind kind, Nanos at, int rank);
  /// A collective never ends. `rank` is the one that is elsewhere, whose line is given; -1 = all are stuck in the first
  /// one, the earliest line is given.
  FirstLine Hang(Nanos at, int rank);
  /// NCCL says which network it uses and which way each rank sends to the next; `slow`: over TCP.
  FirstLine Path(Nanos at, bool slow);
  void Fsdp(Nanos at, const std::string& text);

  base::Status Write(const std::string& folder, double late);

 private:
  int Port() { return 30000 + static_cast<int>(rng_.Below(30000)); }
  void Front(Nanos at, const std::string& text) { Main().Add(at, text); }
  std::string Vllm(Nanos at, const char* process, int pid, const char* level, const char* place) const;
  std::string WorkerName(int rank) const;
  void Loading(Nanos begin, double load);
  void Channel(Nanos at, int rank, bool slow);
  void Transfers(const Sample& now, const Sample& before, const KvLink& link);
  std::string SglangHead(Nanos at, int replica) const;
  void Traceback(Nanos at, int rank, const std::vector<std::string>& lines);
  FirstLine Exception(Nanos at, int rank, const std::string& text);
  FirstLine Killed(Nanos at, int rank);
  LogFile& Main() { return logs_.front(); }
  LogFile& Of(int rank) { return logs_[layout_.engine == Engine::kFsdp ? rank : 0]; }

  Layout layout_;
  Parts parts_;
  Processes processes_;
  base::Rng rng_;
  std::vector<LogFile> logs_;
  LogFile kernel_;
  int iteration_ = 0;
  int decodes_ = 0;
  int64_t decoded_ = 0;
  DraftCounts told_;  ///< at the last line about decoding
  Nanos last_ = 0;
};

}  // namespace teller::inject::sim
