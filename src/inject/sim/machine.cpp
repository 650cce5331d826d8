#include "inject/sim/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "inject/sim/host_ops.hpp"

namespace teller::inject::sim {

namespace {

constexpr int kCompute = 7;  // stream ids as the profiler numbers them
constexpr int kTransfer = 20;
constexpr int kKeys = 25;
constexpr int kStreamIds[] = {kCompute, kTransfer, kKeys};
constexpr double kServer =
    0.7;  // servers launch with less Python between kernels than the plain transformer of the tables

constexpr double kBus = 25;  // bytes a nanosecond between host and device

/// A copy as the profiler describes it.
KernelText CopyText(bool to_host, int64_t bytes, Nanos time) {
  return {to_host ? "\"Memcpy DtoH (Device -> Pinned)\"" : "\"Memcpy HtoD (Pinned -> Device)\"",
          fmt::format(", \"bytes\": {}, \"memory bandwidth (GB/s)\": {}", bytes,
                      static_cast<double>(bytes) / static_cast<double>(std::max<Nanos>(time, 1)))};
}

/// About normal, from -1.5 to 1.5.
double Scatter(base::Rng& rng) {
  return rng.Unit() + rng.Unit() + rng.Unit() - 1.5;
}

Nanos FromMicros(double us) {
  return static_cast<Nanos>(us * 1000);
}

}  // namespace

Machine::Machine(Layout layout, uint64_t seed)
    : layout_(layout), tables_(StandardTables()), program_(Program(layout)), draft_(DraftProgram(layout)) {
  base::Rng rng(seed);
  ranks_.reserve(layout.ranks);
  for (int r = 0; r < layout.ranks; ++r) {
    ranks_.emplace_back(rng.Next());
    ranks_.back().speed = 1 + 0.006 * (rng.Unit() - 0.5);
    ranks_.back().weights.assign(layout.layers, 0);
    ranks_.back().correlation = 1000 + rng.Below(60000);
    all_.push_back(r);
  }
  stays_.resize(layout.ranks);
}

void Machine::ClearStops(int rank, Nanos after) {
  Rank& r = ranks_[rank];
  std::erase_if(r.stops, [&](const Stop& stop) { return stop.end > after; });
  r.next_stop = std::min(r.next_stop, r.stops.size());
}

void Machine::Forget(Nanos before) {
  for (Rank& rank : ranks_) {
    while (rank.next_stop < rank.stops.size() && rank.stops[rank.next_stop].end < before) ++rank.next_stop;
  }
}

void Machine::Spend(Rank& rank, double us) {
  Nanos work = FromMicros(us * rank.factor);
  Nanos at = rank.host;
  for (; rank.next_stop < rank.stops.size(); ++rank.next_stop) {
    const Stop& stop = rank.stops[rank.next_stop];
    if (stop.begin > at + work) break;
    if (stop.end <= at) continue;
    work -= std::max<Nanos>(0, stop.begin - at);
    at = stop.end;
  }
  rank.host = at + work;
}

void Machine::WaitUntil(Rank& rank, Nanos when) {
  rank.host = std::max(rank.host, when);
  Spend(rank, 0.1);
}

double Machine::Between(Rank& rank) {
  return kServer * tables_.between_launches.Draw(rank.rng);
}

Nanos Machine::Start(Rank& rank, int stream, Nanos earliest) {
  const Nanos start = std::max(earliest, rank.device[stream] + FromMicros(tables_.kernel_to_kernel.Draw(rank.rng)));
  if (rank.first_work == 0) rank.first_work = start;
  return start;
}

void Machine::Copy(Rank& rank, bool to_host, int64_t bytes, int stream) {
  Spend(rank, 0.6 * Between(rank));
  const Nanos begin = rank.host;
  const uint64_t id = ++rank.id;
  Spend(rank, 2);
  const Nanos called = rank.host;
  const uint64_t correlation = rank.correlation += 2;
  Spend(rank, 0.4 * tables_.memcpy.Draw(rank.rng));
  const Nanos returned = rank.host;
  Spend(rank, 0.5);
  const Nanos start = Start(rank, stream, called + FromMicros(tables_.launch_to_start.Draw(rank.rng)));
  const Nanos time = FromMicros(0.9 + 0.7 * rank.rng.Unit()) + static_cast<Nanos>(static_cast<double>(bytes) / kBus);
  rank.device[stream] = start + time;
  if (rank.file == nullptr) return;
  rank.file->Operator("\"aten::copy_\"", begin, rank.host, id, InputMembers({{bytes / 8}, {bytes / 8}, {}}));
  rank.file->Call("\"cudaMemcpyAsync\"", 41, called, returned, id, correlation, true);
  rank.file->Work("gpu_memcpy", CopyText(to_host, bytes, time), kStreamIds[stream], start, start + time, id,
                  correlation);
}

void Machine::Synchronize(Rank& rank, const char* call, int cbid) {
  const Nanos begin = rank.host;
  Spend(rank, 1.5);
  WaitUntil(rank, rank.device[0] + FromMicros(2 + 2 * rank.rng.Unit()));
  if (rank.file != nullptr) rank.file->Call(call, cbid, begin, rank.host, rank.id, rank.correlation += 1, false);
}

void Machine::TinySync(Rank& rank) {
  const Nanos begin = rank.host;
  const uint64_t id = ++rank.id;
  Spend(rank, 1);
  Copy(rank, true, 8, 0);
  Synchronize(rank, "\"cudaStreamSynchronize\"", 131);
  Spend(rank, 1);
  if (rank.file != nullptr) rank.file->Operator("\"aten::item\"", begin, rank.host, id, InputMembers({{1}}));
}

void Machine::Neighbours(Rank& rank, const std::vector<std::vector<std::string>>& paths, double us,
                         const std::string& inputs) {
  for (const std::vector<std::string>& path : paths) {
    const double part = us / static_cast<double>(paths.size()) / static_cast<double>(2 * path.size());
    std::vector<Nanos> began;
    for (size_t k = 0; k < path.size(); ++k) {
      Spend(rank, part);
      began.push_back(rank.host);
    }
    for (size_t k = path.size(); k-- > 0;) {
      Spend(rank, part);
      if (rank.file != nullptr) rank.file->Operator(path[k], began[k], rank.host, ++rank.id, inputs);
    }
  }
}

void Machine::Launch(Rank& rank, const Op& op, int replica) {
  const double between = Between(rank);
  const std::string& inputs = op.inputs[static_cast<size_t>(replica)].text;
  // Views and allocations are a part of the host's time between two launches, not more time.
  Spend(rank, (op.before.empty() ? 0.5 : 0.2) * between);
  Neighbours(rank, op.before, 0.3 * between, inputs);
  std::vector<Nanos> began;
  const uint64_t first = rank.id + 1;
  for (size_t k = 0; k < op.path.size(); ++k) {
    began.push_back(rank.host);
    rank.launch_id = ++rank.id;
    if (k == 0 && !op.inside.empty()) Neighbours(rank, op.inside, 0.2 * between, inputs);
    Spend(rank, (op.inside.empty() ? 0.35 : 0.15) * between / static_cast<double>(op.path.size()));
  }
  rank.launch_id = first + op.path.size() - 1;
  for (const Question& question : op.questions) {
    const Nanos asked = rank.host;
    Spend(rank, 0.2 + 0.5 * rank.rng.Unit());
    if (rank.file != nullptr)
      rank.file->Call(question.name, question.cbid, asked, rank.host, rank.launch_id, rank.correlation += 1, false);
  }
  const Nanos called = rank.host;
  rank.launch = rank.correlation += 2;
  Spend(rank, (op.driver ? tables_.launch_ex : tables_.launch).Draw(rank.rng));
  const Nanos returned = rank.host;
  rank.start = called + FromMicros(tables_.launch_to_start.Draw(rank.rng));
  if (rank.file != nullptr) {
    rank.file->Call(op.driver ? "\"cudaLaunchKernelExC\"" : "\"cudaLaunchKernel\"", op.driver ? 430 : 211, called,
                    returned, rank.launch_id, rank.launch, true);
  }
  for (size_t k = op.path.size(); k-- > 0;) {
    Spend(rank, 0.15 * between / static_cast<double>(op.path.size()));
    if (rank.file != nullptr) rank.file->Operator(op.path[k], began[k], rank.host, first + k, inputs);
  }
  if (rank.file != nullptr && op.role == Role::kGather) {
    rank.file->Span("user_annotation", fmt::format("\"FSDP::all_gather (layers.{})\"", op.layer), began.front(),
                    rank.host, fmt::format("\"External id\": {}", first));
  }
}

void Machine::Compute(int r, const Op& op, const StepPlan& plan, int replica, bool in_graph, const Effects& effects) {
  Rank& rank = ranks_[r];
  if (!in_graph) Launch(rank, op, replica);
  Nanos earliest = rank.start;
  if (op.role == Role::kNorm && op.layer >= 0 && layout_.engine == Engine::kFsdp)
    earliest = std::max(earliest, rank.weights[op.layer]);
  const Nanos start = Start(rank, 0, earliest);
  const double typical = tables_.Typical(op.role, plan.shape, layout_.engine == Engine::kFsdp ? 1 : layout_.parts);
  double us = typical * rank.speed * layout_.device * rank.clock *
              (typical < 20 ? tables_.short_spread : tables_.long_spread).Draw(rank.rng);
  const bool concerned = effects.rank < 0 || effects.rank == r;
  // What waits for memory feels a lower clock of the processor less.
  if (concerned) us *= plan.shape.tokens > 256 ? effects.device : 1 + 0.6 * (effects.device - 1);
  if (concerned && (op.role == Role::kExpertUp || op.role == Role::kExpertDown)) us *= effects.experts;
  const bool slow = concerned && effects.role == op.role && op.piece == 0;
  if (slow) us *= effects.role_scale;
  rank.device[0] = start + FromMicros(us);
  if (rank.file == nullptr) return;
  rank.file->Work("kernel", slow && effects.other_kernel ? op.other : op.text, kCompute, start, rank.device[0],
                  rank.launch_id, rank.launch);
}

std::vector<int> Machine::Group(const Op& op, int replica) const {
  std::vector<int> group;
  if (op.role == Role::kReduce || op.role == Role::kLogits) {
    const int first = replica * layout_.ranks_in_replica() + op.stage * layout_.parts;
    for (int i = 0; i < layout_.parts; ++i) group.push_back(first + i);
    return group;
  }
  // Over all replicas.
  for (const int r : all_) {
    if (layout_.stage(r) == op.stage) group.push_back(r);
  }
  return group;
}

/// A transfer to the next stage of a pipeline, both ends of it launched. Small tensors leave into the library's buffer,
/// whether or not somebody waits for them; the sender of a large one, and whoever receives, wait for the other end.
void Machine::Pass(int from, const Op& op, const StepPlan& plan, const Effects& effects) {
  constexpr int64_t kBuffer = 4 << 20;
  const int to = from + layout_.parts;
  Rank& sender = ranks_[from];
  Rank& receiver = ranks_[to];
  const int64_t bytes = Bytes(op.role, layout_, plan.shape);
  const bool far = layout_.node(from) != layout_.node(to);
  double us = (tables_.collective_latency +
               static_cast<double>(bytes) * (far ? tables_.network_per_byte : tables_.node_per_byte)) *
              effects.transfer * tables_.collective_spread.Draw(sender.rng);
  const bool own = effects.link == from || (effects.both_links && effects.link == to);
  if (effects.link >= 0 && own && (effects.between_stages || effects.both_links)) us *= effects.link_scale;
  const Nanos sent = Start(sender, 1, std::max(sender.start, sender.device[0]));
  const Nanos asked = Start(receiver, 1, receiver.start);
  const Nanos end = std::max(sent, asked) + FromMicros(us);
  sender.device[1] = bytes > kBuffer ? end : sent + FromMicros(0.5 * tables_.collective_latency);
  receiver.device[1] = end + FromMicros(0.5 * tables_.end_spread.Draw(receiver.rng));
  // What the next stage computes reads what came.
  receiver.device[0] = std::max(receiver.device[0], receiver.device[1]);
  std::vector<int> group;
  for (int stage = 0; stage < layout_.stages; ++stage)
    group.push_back(from + (stage - layout_.stage(from)) * layout_.parts);
  const auto write = [&](Rank& rank, bool receives, Nanos begin) {
    if (rank.file == nullptr) return;
    KernelText text = op.text;
    text.args += CollectiveArgs(op.role, receives, layout_, plan.shape, group, "5");
    text.args += receives ? fmt::format(", \"Src Rank\": {}", from) : fmt::format(", \"Dst Rank\": {}", to);
    rank.file->Work("kernel", text, kTransfer, begin, rank.device[1], rank.launch_id, rank.launch);
  };
  write(sender, false, sent);
  write(receiver, true, asked);
}

std::vector<Nanos> Machine::Ring(const std::vector<int>& group, Nanos last, Nanos transfer,
                                 const Effects& effects) const {
  const size_t size = group.size();
  const size_t rounds = 2 * (size - 1);
  // A piece goes around the ring; whoever receives over the slow link passes everything on late.
  std::vector<double> piece(size, static_cast<double>(transfer) / static_cast<double>(rounds));
  for (size_t i = 0; i < size; ++i) {
    if (group[(i + size - 1) % size] == effects.link) piece[i] *= effects.link_scale;
    if (effects.both_links && group[i] == effects.link) piece[i] *= effects.link_scale;
  }
  std::vector<double> done(size, 0);
  std::vector<double> next(size);
  const size_t modelled = std::min<size_t>(rounds, 64);  // later rounds only repeat the pace of the slowest link
  for (size_t round = 0; round < modelled; ++round) {
    for (size_t i = 0; i < size; ++i) next[i] = std::max(done[i], done[(i + size - 1) % size]) + piece[i];
    done.swap(next);
  }
  const double more = *std::max_element(piece.begin(), piece.end()) * static_cast<double>(rounds - modelled);
  std::vector<Nanos> ends(size);
  for (size_t i = 0; i < size; ++i) ends[i] = last + static_cast<Nanos>(done[i] + more);
  return ends;
}

void Machine::Meet(const Op& op, const std::vector<int>& group, const char* group_name, const StepPlan& plan,
                   const Effects& effects) {
  const int stream = op.role == Role::kGather ? 1 : 0;
  Nanos last = 0;
  for (const int r : group) {
    Rank& rank = ranks_[r];
    rank.start = Start(rank, stream, rank.start);
    last = std::max(last, rank.start);
  }
  const bool far = layout_.node(group.front()) != layout_.node(group.back());
  int64_t bytes = Bytes(op.role, layout_, plan.shape);
  if (op.role == Role::kGather || op.role == Role::kLogits) bytes *= static_cast<int64_t>(group.size()) - 1;
  const double us = (tables_.collective_latency +
                     static_cast<double>(bytes) * (far ? tables_.network_per_byte : tables_.node_per_byte)) *
                    effects.transfer * tables_.collective_spread.Draw(ranks_[group.front()].rng);
  const Nanos transfer = FromMicros(us);
  std::vector<Nanos> ends(group.size(), last + transfer);
  const bool slow = effects.link >= 0 && !effects.between_stages && effects.link >= group.front() &&
                    effects.link <= group.back() && group.size() > 1;
  if (slow) ends = Ring(group, last, transfer, effects);
  const std::string args = ranks_[group.front()].file != nullptr
                               ? CollectiveArgs(op.role, false, layout_, plan.shape, group, group_name)
                               : "";
  KernelText text = op.text;
  text.args += args;
  for (size_t i = 0; i < group.size(); ++i) {
    Rank& rank = ranks_[group[i]];
    // The table has differences between two ranks read with microsecond stamps; half of it is one rank's.
    const Nanos end = ends[i] + FromMicros(0.5 * tables_.end_spread.Draw(rank.rng));
    rank.device[stream] = end;
    if (op.role == Role::kGather) rank.weights[op.layer] = end;
    if (rank.file != nullptr)
      rank.file->Work("kernel", text, kStreamIds[stream], rank.start, end, rank.launch_id, rank.launch);
  }
}

void Machine::Prepare(int r, const StepPlan& plan, const Effects& effects) {
  Rank& rank = ranks_[r];
  const bool concerned = effects.rank < 0 || effects.rank == r;
  // How fast the host is wanders a little from step to step; now and then something else runs first.
  rank.pace = 0.8 * rank.pace + 0.2 * Scatter(rank.rng);
  rank.factor = layout_.host * std::exp(0.25 * rank.pace) * (concerned ? effects.host : 1);
  rank.clock = std::exp(0.012 * Scatter(rank.rng));
  rank.first_work = 0;
  const double other = rank.rng.Unit();
  if (other < 0.02) Spend(rank, 30 + 300 * rank.rng.Unit());
  Spend(rank, 60 + 6.0 * static_cast<double>(plan.shape.sequences));
  for (int copy = 0; copy < 4; ++copy) Copy(rank, false, 2048, 0);
  if (concerned && effects.in_step > 0) Spend(rank, static_cast<double>(effects.in_step) / 1000 / rank.factor);
  if ((concerned && effects.load_module > 0) || plan.warm_up) {
    const double us = plan.warm_up ? 30000 + 20000 * rank.rng.Unit() : static_cast<double>(effects.load_module) / 1000;
    Spend(rank, 0.9 * us / rank.factor);
    const Nanos begin = rank.host;
    Spend(rank, 0.1 * us / rank.factor);
    if (rank.file != nullptr)
      rank.file->Call("\"cuModuleLoadData\"", 37, begin, rank.host, rank.id, rank.correlation += 1, false);
  }
  // Keys that have come are copied by a few large calls.
  constexpr int kCopies = 4;
  for (int copy = 0; copy < kCopies && plan.loads > 0; ++copy) Copy(rank, false, plan.loads / kCopies + 1, 2);
}

/// Launches a graph: the kernels that follow are its.
void Machine::Replay(Rank& rank) {
  Spend(rank, 0.5 * Between(rank));
  const Nanos called = rank.host;
  rank.launch = rank.correlation += 2;
  rank.launch_id = ++rank.id;
  Spend(rank, tables_.graph_launch.Draw(rank.rng));
  rank.start = rank.host + FromMicros(tables_.launch_to_start.Draw(rank.rng));
  if (rank.file != nullptr)
    rank.file->Call("\"cudaGraphLaunch\"", 311, called, rank.host, rank.launch_id, rank.launch, true);
}

void Machine::Finish(int r, const StepPlan& plan, Nanos begin) {
  Rank& rank = ranks_[r];
  Copy(rank, true, 64, 0);
  Synchronize(rank, "\"cudaEventSynchronize\"", 124);
  Spend(rank, 40 + 2.0 * static_cast<double>(plan.shape.sequences));
  stays_[r] = {begin, rank.host};
  if (rank.file == nullptr) return;
  const uint64_t id = ++rank.id;
  const std::string name = "\"" + plan.name + "\"";
  if (layout_.engine == Engine::kSglang) {
    rank.file->Span("user_annotation", "\"scheduler.run_batch\"", begin - 9 * base::kMicro,
                    rank.host + 5 * base::kMicro, fmt::format("\"External id\": {}", id));
  }
  rank.file->Span("user_annotation", name, begin, rank.host, fmt::format("\"External id\": {}", id));
  rank.file->DeviceSpan(name, kCompute, rank.first_work, rank.device[0], id);
}

/// The draft model proposes tokens, one pass each, for the sequences that decode. Its passes are one graph.
void Machine::Draft(const std::vector<StepPlan>& plans, const Effects& effects) {
  std::vector<StepPlan> small = plans;
  int passes = 0;
  for (StepPlan& plan : small) {
    passes = std::max(passes, plan.drafts);
    plan.shape.tokens = plan.shape.sequences;
    plan.shape.pairs = 0;
  }
  if (passes == 0) return;
  const int per_replica = layout_.ranks / static_cast<int>(plans.size());
  for (int r = 0; r < layout_.ranks; ++r) {
    if (small[static_cast<size_t>(r / per_replica)].graph && !effects.no_graph) Replay(ranks_[r]);
  }
  for (int pass = 0; pass < passes; ++pass) Forward(draft_, small, true, effects);
}

/// Says what an operation's inputs are, of each replica, where that changed.
void Machine::Describe(Op& op, const std::vector<StepPlan>& plans) const {
  op.inputs.resize(plans.size());
  for (size_t k = 0; k < plans.size(); ++k) {
    InputText& inputs = op.inputs[k];
    if (!inputs.text.empty() && inputs.tokens == plans[k].shape.tokens && inputs.sequences == plans[k].shape.sequences)
      continue;
    inputs = {plans[k].shape.tokens, plans[k].shape.sequences, InputMembers(Dims(op.role, layout_, plans[k].shape))};
  }
}

/// One pass of a model on all ranks, operation by operation. `whole`: head and sampling belong to the graph as well.
void Machine::Forward(std::vector<Op>& program, const std::vector<StepPlan>& plans, bool whole,
                      const Effects& effects) {
  const int per_replica = layout_.ranks / static_cast<int>(plans.size());
  int count = 0;
  for (Op& op : program) {
    Describe(op, plans);
    const bool outside = !whole && (op.role == Role::kHead || op.role == Role::kSample || op.role == Role::kLogits);
    for (int r = 0; r < layout_.ranks; ++r) {
      if (layout_.stage(r) != op.stage + (op.receives ? 1 : 0)) continue;
      const StepPlan& plan = plans[static_cast<size_t>(r / per_replica)];
      const bool in_graph = plan.graph && !effects.no_graph && !outside;
      if (op.role == Role::kPass) {
        Launch(ranks_[r], op, r / per_replica);
        if (op.receives) Pass(r - layout_.parts, op, plan, effects);
        // A graph is launched behind what it reads.
        if (op.receives && op.last && plan.graph && !effects.no_graph) Replay(ranks_[r]);
        continue;
      }
      if (!IsCollective(op.role)) {
        Compute(r, op, plan, r / per_replica, in_graph, effects);
      } else if (!in_graph) {
        Launch(ranks_[r], op, r / per_replica);
      }
      if (whole) continue;
      const bool concerned = effects.rank < 0 || effects.rank == r;
      if (op.role == Role::kAttn && concerned && !in_graph && count < effects.syncs) TinySync(ranks_[r]);
      if (outside && concerned && plan.graph && !effects.no_graph && op.role == Role::kHead) {
        for (int k = 0; k < effects.syncs; ++k) TinySync(ranks_[r]);
      }
    }
    if (op.role == Role::kAttn) ++count;
    if (!IsCollective(op.role)) continue;
    if (op.role != Role::kReduce && op.role != Role::kLogits) {
      Meet(op, Group(op, 0), "0", plans.front(), effects);
      continue;
    }
    for (int replica = 0; replica < static_cast<int>(plans.size()); ++replica)
      Meet(op, Group(op, replica), "3", plans[static_cast<size_t>(replica)], effects);
  }
}

/// What an FSDP rank does between two steps: picks the next work, turns tokens into text.
void Machine::LoopTime(Rank& rank) {
  const double usual = 150 * std::pow(3.0, rank.rng.Unit());
  Spend(rank, rank.rng.Unit() < 0.04 ? 4 * usual : usual);
}

const std::vector<Stay>& Machine::Step(const std::vector<StepPlan>& plans, Nanos begin, const Effects& effects,
                                       std::vector<std::unique_ptr<TraceFile>>& files) {
  const int per_replica = layout_.ranks / static_cast<int>(plans.size());
  std::vector<Nanos> began(layout_.ranks);
  for (int r = 0; r < layout_.ranks; ++r) {
    Rank& rank = ranks_[r];
    rank.file = files.empty() ? nullptr : files[r].get();
    WaitUntil(rank, begin + FromMicros(8 + 25 * rank.rng.Unit()));
    const bool own_loop = layout_.engine == Engine::kFsdp && (effects.rank < 0 || effects.rank == r);
    if (layout_.engine == Engine::kFsdp) LoopTime(rank);
    if (own_loop && effects.before_step > 0) Spend(rank, static_cast<double>(effects.before_step) / 1000);
    began[r] = rank.host;
    Prepare(r, plans[r / per_replica], effects);
  }
  Draft(plans, effects);
  for (int r = 0; r < layout_.ranks; ++r) {
    // Later stages replay theirs when they have received what it reads.
    if (layout_.stage(r) == 0 && plans[r / per_replica].graph && !effects.no_graph) Replay(ranks_[r]);
  }
  Forward(program_, plans, false, effects);
  for (int r = 0; r < layout_.ranks; ++r) Finish(r, plans[r / per_replica], began[r]);
  return stays_;
}

const std::vector<Stay>& Machine::Save(int64_t bytes, const std::vector<Nanos>& writes,
                                       std::vector<std::unique_ptr<TraceFile>>& files) {
  const StepPlan plan = {.name = "", .shape = {1, 0, 0, 1}};
  for (int r = 0; r < layout_.ranks; ++r) {
    Rank& rank = ranks_[r];
    rank.file = files.empty() ? nullptr : files[r].get();
    rank.factor = layout_.host;
    stays_[r].begin = rank.host;
    for (int layer = 0; layer < layout_.layers; ++layer) Copy(rank, true, bytes / layout_.layers, 0);
    Synchronize(rank, "\"cudaStreamSynchronize\"", 131);
    Spend(rank, static_cast<double>(writes[r]) / 1000 / rank.factor);
  }
  if (layout_.ranks > 1) {
    Op barrier = Barrier(layout_);
    Describe(barrier, {plan});
    for (Rank& rank : ranks_) Launch(rank, barrier, 0);
    Meet(barrier, all_, "0", plan, {});
  }
  for (int r = 0; r < layout_.ranks; ++r) {
    Synchronize(ranks_[r], "\"cudaDeviceSynchronize\"", 165);
    stays_[r].end = ranks_[r].host;
  }
  return stays_;
}

}  // namespace teller::inject::sim
