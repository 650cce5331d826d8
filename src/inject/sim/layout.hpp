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
  int parts = 1;  ///< ranks that share one replica of the model (tensor parallel); all of them with FSDP
  int ranks_in_node = 8;
  int layers = 12;
  int drafts = 0;        ///< tokens that a draft model proposes a step
  bool experts = false;  ///< mixture of experts, expert parallel over all ranks

  int replicas() const { return engine == Engine::kFsdp ? 1 : ranks / parts; }
  int node(int rank) const { return rank / ranks_in_node; }
};

/// One operation of the forward pass.
struct Op {
  Role role = Role::kNorm;
  int layer = -1;     ///< -1 outside of the layers
  std::string outer;  ///< quoted name of the operator that Python calls
  std::string inner;  ///< quoted name of what it calls; empty = nothing
  std::string name;   ///< kernel's name, unquoted
  KernelText text;
  KernelText other;     ///< the kernel that another choice of algorithm would run
  bool driver = false;  ///< launched by cudaLaunchKernelExC
};

bool IsCollective(Role role);
/// All operations in program order.
std::vector<Op> Program(const Layout& layout);
/// The small model that proposes tokens: one layer and its own head.
std::vector<Op> DraftProgram(const Layout& layout);
/// A collective over all ranks that carries nothing.
Op Barrier(const Layout& layout);
/// Bytes that one rank puts into a collective.
int64_t Bytes(Role role, const Layout& layout, const Shape& shape);
/// Sizes of the inputs of an operator, as the profiler writes them.
std::string Dims(Role role, const Layout& layout, const Shape& shape);
/// Members of a collective kernel's args.
std::string CollectiveArgs(Role role, const Layout& layout, const Shape& shape, const std::vector<int>& group,
                           const char* group_name);

}  // namespace teller::inject::sim
