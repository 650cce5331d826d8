#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "inject/sim/client_net.hpp"
#include "inject/sim/label_file.hpp"
#include "inject/sim/machine.hpp"
#include "inject/sim/records.hpp"
#include "inject/sim/scheduler.hpp"
#include "inject/sim/service_log.hpp"
#include "inject/sim/simulate.hpp"

namespace teller::inject::sim {

/// One simulated run with one fault, from its first request to its label. Threads: confined.
class CaseRun {
 public:
  CaseRun(const SimulateOptions& options, const KindInfo& kind, uint64_t seed);

  /// Runs it and writes all files into `folder`, which exists. Errors: kUnreadable.
  base::Status Make(const std::string& folder, const std::string& name);
  uint64_t trace_bytes() const { return trace_bytes_; }

 private:
  struct Replica {
    Replica(SchedulerOptions options, std::unique_ptr<KvLink> way, uint64_t seed)
        : link(std::move(way)), scheduler(options, link.get(), seed) {}
    std::unique_ptr<KvLink> link;
    Scheduler scheduler;
    Batch batch;
    uint64_t prompt_tokens = 0;
    uint64_t made_tokens = 0;
    uint64_t done = 0;
    uint64_t aborted = 0;
    int64_t room_left = 0;  ///< of a cache under pressure; 0 = not yet
  };

  double Between(double low, double high) const;
  double Draw(double low, double high) { return low + (high - low) * rng_.Unit(); }
  double DrawFault(double low, double high) { return low + (high - low) * fault_rng_.Unit(); }
  bool Is(Kind kind) const { return kind_.kind == kind; }
  bool IsLookAlike() const {
    return kind_.fault == trace::FaultClass::kNotAFault || kind_.fault == trace::FaultClass::kObserverEffect;
  }
  std::string ProcessName(int rank) const;
  void PlanFault();
  void Dial();
  void Param(const char* key, double value) { truth_.params.emplace_back(key, value); }
  bool UnderFault(int step) const { return step >= first_ && step < last_; }
  bool Recorded(int step) const { return step >= lead_ && step < lead_ + options_.steps; }

  void OpenTraces();
  base::Status CloseTraces();
  Effects EffectsFor(int step, bool admits);
  bool MarksSteps(bool admits) const;
  void BeginFault(int step, Nanos now);
  void EndFault(int step, Nanos now);
  void AddStops(Nanos now);
  /// The fault left this line; the earliest one counts.
  void NoteLine(const FirstLine& line);
  void Note(int step, const std::string& annotation, const std::vector<Stay>& stays, Nanos gap, bool admits);

  void OpenService();
  void Turn(int step);
  void Disturb(bool active);
  void Adapt(Replica& replica, bool active);
  bool Choose();
  bool HasWork(int turn);
  Replica& At(int replica, int turn) { return replicas_[static_cast<size_t>(replica * layout_.stages + turn)]; }
  Nanos NextEvent() const;
  void Account(int index, const Stay& stay, bool graph);
  void RunStep(int step);
  base::Status Serve();
  double UsualStep(const Effects& effects, bool eager) const;
  double EstimateStep();
  void Reach(double& factor, const char* key, double low, double high);
  Request MakeRequest(Nanos at);
  void Enter(Request& request);
  void Deliver(Nanos now);
  void GiveUp(Nanos now);
  void Broken(Replica& replica);
  Nanos NextArrival();
  StepPlan PlanOf(const Replica& replica, int step);
  void Observe(Nanos now);
  Sample SampleOf(int index, Nanos now) const;
  void Scrape(Nanos now);
  base::Status ServeSharded();
  void Save(int step);
  base::Status WriteRest();
  void HostCounters(Nanos at);
  void HostSample(Nanos at);

  const SimulateOptions& options_;
  const KindInfo& kind_;
  // A run and its healthy twin, which has the same seed, draw the same service and the same load.
  base::Rng rng_;         ///< the service
  base::Rng load_rng_;    ///< the requests
  base::Rng record_rng_;  ///< noise of counters
  base::Rng fault_rng_;   ///< all that the fault alone draws
  Layout layout_;
  Parts parts_;
  Truth truth_;
  std::string folder_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<ServiceLog> log_;
  Processes processes_;
  std::vector<std::unique_ptr<TraceFile>> files_;
  uint64_t trace_bytes_ = 0;

  int lead_ = 0;
  int total_ = 0;
  int first_ = 0;  ///< steps of the fault
  int last_ = 0;
  bool begun_ = false;
  bool ended_ = false;
  Effects wrong_;
  std::vector<Stop> stops_;
  std::vector<Stop> saves_;  ///< when checkpoints were written
  double usual_load_ = 0;    ///< seconds to load the weights
  Nanos start_ = 0;
  Nanos now_ = 0;
  Nanos line_at_ = 0;  ///< of the line that the label names

  std::deque<Request> requests_;
  std::vector<Request*> arriving_;  ///< on their way to the server
  std::deque<Request*> entered_;    ///< at or behind the front end, in order
  std::vector<Request*> leaving_;   ///< their clients gave up, the server will learn it
  ClientNet net_;
  /// Of each replica one for every stage of its pipeline: as many batches are under way at once, each with sequences of
  /// its own. Batches of one replica stand side by side.
  std::vector<Replica> replicas_;
  std::vector<Nanos> ready_;  ///< when the last batch of each of them was over
  int turn_ = 0;              ///< whose batch is next, or under way
  size_t delivered_ = 0;
  bool starved_ = false;  ///< before this step nobody worked: keys were missing, or a checkpoint was written
  SchedulerOptions usual_;
  double running_ = 0;  ///< sequences at once, wanted
  double usual_rate_ = 0;
  double rate_ = 0;  ///< requests a second
  Nanos gap_ = 0;    ///< before the next step
  Nanos next_arrival_ = 0;
  Nanos moved_until_ = 0;  ///< keys that came before were copied to the device
  Nanos front_free_ = 0;
  double front_factor_ = 1;
  int64_t longest_ = 0;
  int extra_ = 0;             ///< requests to send at once
  std::vector<Sample> told_;  ///< counters of each replica at the last statistics line
  std::string metrics_;
  std::string host_;
  Nanos next_scrape_ = 0;
  Nanos next_host_ = 0;
  Nanos next_refusal_ = 0;
  Nanos refusal_gap_ = 0;
  Nanos statistics_at_ = 0;
};

}  // namespace teller::inject::sim
