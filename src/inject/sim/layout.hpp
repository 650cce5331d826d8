#pragma once

#include <string>
#include <vector>

#include "inject/sim/tables.hpp"
#include "inject/sim/trace_file.hpp"

namespace teller::inject::sim {

enum class Engine : uint8_t { kVllm, kSglang, kFsdp };
const char* Name(Engine engine);

/// How the model is spread over ranks.
struct Layout {
  Engine engine = Engine::kVllm;
  int ranks = 1;
  int parts = 1;   ///< ranks that share one stage of a replica (tensor parallel); all of them with FSDP
  int stages = 1;  ///< of a replica, each with a share of the layers (pipeline parallel)
  int ranks_in_node = 8;
  int layers = 12;
  int drafts = 0;        ///< tokens that a draft model proposes a step
  double host = 1;       ///< how slow this machine's processors are, against those of the tables
  double device = 1;     ///< how slow its devices are
  bool experts = false;  ///< mixture of experts, expert parallel over all ranks

  int ranks_in_replica() const { return parts * stages; }
  int replicas() const { return engine == Engine::kFsdp ? 1 : ranks / ranks_in_replica(); }
  int replica(int rank) const { return engine == Engine::kFsdp ? 0 : rank / ranks_in_replica(); }
  /// Ranks count parts first, then stages, then replicas.
  int stage(int rank) const { return engine == Engine::kFsdp ? 0 : rank / parts % stages; }
  int stage_of_layer(int layer) const { return layer * stages / layers; }
  int node(int rank) const { return rank / ranks_in_node; }
};

/// What is said about an operation's inputs at one shape.
struct InputText {
  int64_t tokens = -1;
  int64_t sequences = -1;
  std::string text;  ///< JSON members
};

/// A call of the runtime that launches nothing.
struct Question {
  std::string name;  ///< quoted
  int cbid = 0;
};

/// One operation of the forward pass.
struct Op {
  Role role = Role::kNorm;
  int layer = -1;         ///< -1 outside of the layers
  int piece = 0;          ///< eager code takes several kernels for some roles
  int stage = 0;          ///< of the pipeline; of a pass the one that sends
  bool receives = false;  ///< of a pass: the end at the next stage
  bool last = false;      ///< of a pass: of the last tensor
  std::vector<std::string>
      path;  ///< quoted names: the operator that Python calls, what it calls, down to the one that launches
  std::vector<std::vector<std::string>> before;  ///< operators that launch nothing, done before it
  std::vector<std::vector<std::string>> inside;  ///< ... inside of the first of `path`
  std::vector<Question> questions;               ///< to the runtime, before the launch
  std::vector<InputText> inputs;                 ///< of each replica, kept up to date by the machine
  std::string name;                              ///< kernel's name, unquoted
  KernelText text;
  KernelText other;     ///< the kernel that another choice of algorithm would run
  bool driver = false;  ///< launched by cudaLaunchKernelExC
};

bool IsCollective(Role role);
/// A rank's place among the others as engines write it, each part behind the mark: "_PP1_TP0".
std::string PlaceOf(const Layout& layout, int rank, char mark);
/// All operations in program order.
std::vector<Op> Program(const Layout& layout);
/// The small model that proposes tokens: one layer and its own head.
std::vector<Op> DraftProgram(const Layout& layout);
/// A collective over all ranks that carries nothing.
Op Barrier(const Layout& layout);
/// Bytes that one rank puts into a collective.
int64_t Bytes(Role role, const Layout& layout, const Shape& shape);
/// Sizes of the inputs of an operator.
std::vector<std::vector<int64_t>> Dims(Role role, const Layout& layout, const Shape& shape);
/// Members of a collective kernel's args. `receives`: of a pass, which end it is.
std::string CollectiveArgs(Role role, bool receives, const Layout& layout, const Shape& shape,
                           const std::vector<int>& group, const char* group_name);

}  // namespace teller::inject::sim
