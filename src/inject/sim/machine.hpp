#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inject/sim/layout.hpp"

namespace teller::inject::sim {

/// A stretch in which a host thread does nothing: stopped, throttled, collecting garbage.
struct Stop {
  Nanos begin = 0;
  Nanos end = 0;
};

/// What is wrong while a step runs. The defaults are a healthy machine.
struct Effects {
  int rank = -1;             ///< whom host and device effects concern; -1 = all
  double host = 1;           ///< factor on host work
  double device = 1;         ///< factor on all computing kernels
  double experts = 1;        ///< factor on the expert products
  std::optional<Role> role;  ///< one operation, on all ranks
  double role_scale = 1;
  bool other_kernel = false;  ///< it is another kernel that is slow
  int link = -1;              ///< ring link from this rank to the next of its group
  bool both_links = false;    ///< also the one that leads to it
  double link_scale = 1;
  bool between_stages = false;  ///< the link is the one to the next stage of the pipeline, not the ring's
  double transfer = 1;          ///< factor on all transfers
  bool no_graph = false;        ///< kernels are launched one by one
  int syncs = 0;                ///< tiny copies that wait for the device, spread over the step
  Nanos in_step = 0;            ///< host work at one place, before the forward pass
  Nanos before_step = 0;        ///< host work between steps, in the scheduler's process
  Nanos load_module = 0;        ///< a compiler run and a module load before the forward pass
  double accept = 1;            ///< factor on the chance that a proposed token is right
  double keys = 1;              ///< factor on the time that keys take to come
  double save = 1;              ///< factor on the time that a checkpoint takes
  double loss = 0;              ///< share of lost packets between clients and the server
  double reset = 0;             ///< share of tokens at which a client's connection breaks
  Nanos delay = 0;              ///< of packets between clients and the server
};

/// One step of one replica.
struct StepPlan {
  std::string name;  ///< of the annotation
  Shape shape;
  bool graph = false;  ///< replayed as one graph
  bool warm_up = false;
  int drafts = 0;     ///< passes of the draft model before it
  int64_t loads = 0;  ///< bytes of keys that are copied to the device meanwhile
};

/// When a rank was inside a step, true time.
struct Stay {
  Nanos begin = 0;
  Nanos end = 0;
};

/// Ranks with a host thread, a compute stream and a stream for collectives. Every operation is computed on every rank
/// of its stage in program order; collectives wait for the last rank and stages of a pipeline for what they receive, so
/// lateness spreads by itself. A stage that is done is free for the next step while later stages are at this one. Draws
/// come from one generator a rank: the result does not depend on who is written to disk. Threads: confined.
class Machine {
 public:
  Machine(Layout layout, uint64_t seed);

  /// Runs a step of every replica. Ranks begin at `begin` or when they are done with the step before. `files` is empty
  /// or has one file a rank.
  const std::vector<Stay>& Step(const std::vector<StepPlan>& plans, Nanos begin, const Effects& effects,
                                std::vector<std::unique_ptr<TraceFile>>& files);
  /// Every rank writes its share of a checkpoint and waits for the others: copies to the host, `writes` of host time,
  /// a barrier. Begins when the ranks are done with the step before.
  const std::vector<Stay>& Save(int64_t bytes, const std::vector<Nanos>& writes,
                                std::vector<std::unique_ptr<TraceFile>>& files);
  /// Adds stops of one rank's host, in order of time.
  void AddStop(int rank, Stop stop) { ranks_[rank].stops.push_back(stop); }
  /// Drops stops that would end later than `after`.
  void ClearStops(int rank, Nanos after);
  void Forget(Nanos before);
  const Layout& layout() const { return layout_; }
  const std::vector<Op>& program() const { return program_; }
  base::Rng& rng(int rank) { return ranks_[rank].rng; }

 private:
  struct Rank {
    explicit Rank(uint64_t seed) : rng(seed) {}
    base::Rng rng;
    double speed = 1;  ///< devices differ a little
    Nanos host = 0;
    Nanos device[3] = {0, 0, 0};  ///< when the streams are free
    Nanos first_work = 0;
    Nanos gathered = 0;
    std::vector<Nanos> weights;  ///< when a layer's weights have arrived
    std::vector<Stop> stops;
    size_t next_stop = 0;
    uint64_t correlation = 1000;
    uint64_t id = 100;
    Nanos start = 0;  ///< of the collective that is being resolved
    uint64_t launch = 0;
    uint64_t launch_id = 0;
    double factor = 1;  ///< on host work, now
    double pace = 0;    ///< of the host, against its usual one
    double clock = 1;   ///< of the device, likewise
    TraceFile* file = nullptr;
  };

  void Spend(Rank& rank, double us);
  void WaitUntil(Rank& rank, Nanos when);
  double Between(Rank& rank);
  void Copy(Rank& rank, bool to_host, int64_t bytes, int stream);
  void Draft(const std::vector<StepPlan>& plans, const Effects& effects);
  void Replay(Rank& rank);
  void LoopTime(Rank& rank);
  void Forward(std::vector<Op>& program, const std::vector<StepPlan>& plans, bool whole, const Effects& effects);
  void Synchronize(Rank& rank, const char* call, int cbid);
  void TinySync(Rank& rank);
  void Neighbours(Rank& rank, const std::vector<std::vector<std::string>>& paths, double us, const std::string& inputs);
  void Describe(Op& op, const std::vector<StepPlan>& plans) const;
  void Launch(Rank& rank, const Op& op, int replica);
  Nanos Start(Rank& rank, int stream, Nanos earliest);
  void Compute(int r, const Op& op, const StepPlan& plan, int replica, bool in_graph, const Effects& effects);
  void Meet(const Op& op, const std::vector<int>& group, const char* group_name, const StepPlan& plan,
            const Effects& effects);
  void Pass(int from, const Op& op, const StepPlan& plan, const Effects& effects);
  std::vector<Nanos> Ring(const std::vector<int>& group, Nanos last, Nanos transfer, const Effects& effects) const;
  void Prepare(int r, const StepPlan& plan, const Effects& effects);
  void Finish(int r, const StepPlan& plan, Nanos begin);
  std::vector<int> Group(const Op& op, int replica) const;

  Layout layout_;
  const Tables& tables_;
  std::vector<Op> program_;
  std::vector<Op> draft_;  ///< of the model that proposes tokens
  std::vector<Rank> ranks_;
  std::vector<Stay> stays_;
  std::vector<int> all_;
};

}  // namespace teller::inject::sim
