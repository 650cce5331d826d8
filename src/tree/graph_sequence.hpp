#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/step.hpp"
#include "trace/store.hpp"
#include "tree/graph_align.hpp"
#include "tree/module_path.hpp"

namespace teller::tree {

/// Numbers names, families and stems of kernels for all sequences of a run. Threads: confined.
class GraphTokens {
 public:
  explicit GraphTokens(const trace::Store& store) : store_(store) {}

  /// Of a piece of GPU work or, where nothing ran, of the kernel name that its launch tells.
  GraphToken OfName(trace::StringId name, trace::SpanKind kind);
  /// Of a launch that does not tell its kernel: what the operator or the module around it does.
  GraphToken OfCall(std::string_view call, const Surroundings& around);
  /// Of a launch of a sequence that was learned earlier; its name equals no other's.
  GraphToken OfLearned(const trace::LearnedLaunch& launch);

 private:
  KernelClass ClassAround(trace::StringId op, trace::StringId module) const;
  uint32_t Number(std::string text);

  const trace::Store& store_;
  std::unordered_map<uint64_t, GraphToken> known_;  // by name and kind
  std::unordered_map<std::string, uint32_t> numbers_;
};

/// One element of a reference.
struct GraphPlace {
  trace::SpanRow launch;  ///< none when it was learned earlier
  trace::StringId module;
  trace::StringId op;
  trace::StringId kernel;  ///< its name; none = the launch does not tell, or it was learned earlier
};

/// A sequence of launches whose modules and operators are known: those of one capture, or of one step without a graph.
struct GraphReference {
  trace::ProcessRow process;  ///< none when it was learned earlier
  base::FileRow learned;      ///< the file that it was learned into; none for sequences of this run
  uint32_t model = 0;         ///< of a learned one: those of one recorded process have one number
  trace::GraphSource source = trace::GraphSource::kCapture;
  bool whole = false;         ///< exactly what a graph holds; else the graph may be a part of it
  bool joined = false;        ///< several captures of one forward pass, in their order
  bool names_kernels = true;  ///< false: a capture that tells calls only
  int64_t batch = -1;         ///< what it was captured for; -1 unknown
  std::vector<GraphToken> tokens;
  std::vector<GraphPlace> places;  ///< as many as tokens
};

/// One launch of a graph with its work in order of begin.
struct GraphLaunch {
  trace::ProcessRow process;
  trace::SpanRow launch;       ///< none when it is not in the file
  uint32_t step = UINT32_MAX;  ///< index into Trees::steps
  std::vector<trace::SpanRow> work;
};

/// "cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch" and their variants.
bool IsGraphLaunch(std::string_view call);
/// Calls that put one piece of work on a stream. Under capture only asynchronous copies are legal.
bool IsWorkLaunch(std::string_view call);

/// The graph launches of all processes. Work belongs to one when the call that launched it is one, or, where the call
/// is not in the file, when it has a graph node or shares its correlation id. Order: process, then begin of the first
/// work.
std::vector<GraphLaunch> FindGraphLaunches(const trace::Store& store, const trace::Trees& trees);

/// All sequences that a replay can be aligned to; equal ones of one process only once. Bounded by kMaxReferenceTokens.
std::vector<GraphReference> FindGraphReferences(trace::Store& store, const trace::Trees& trees, GraphTokens& tokens);

/// What this run shows (`references`) and what it was given as learned, for a file that serves later runs: equal ones
/// once, captures before steps, bounded by kMaxLearnedSequences and kMaxLearnedLaunches. `left_out` counts what the
/// bounds cut. Kernel names lose their numbers. Order: captures first, then as found.
std::vector<trace::LearnedSequence> LearnSequences(trace::Store& store, const trace::Trees& trees, uint64_t& left_out);

/// Appends what was learned earlier (Store::learned_graphs) to the references of a run.
void AddLearned(const trace::Store& store, GraphTokens& tokens, std::vector<GraphReference>& references);

inline constexpr size_t kMaxReferenceTokens = size_t{1} << 22;

}  // namespace teller::tree
