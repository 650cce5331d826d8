#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "encode/symbol.hpp"
#include "slice/slice.hpp"
#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::encode {

/// A stretch of one process's time whose spans make one forest. A span belongs to the segment in which it begins, and
/// GPU work to that of its launch whenever it ran; so the segments of a process hold each of its spans exactly once.
struct Segment {
  enum class Kind : uint8_t {
    kStep = 0,   ///< a step and the gap before it: from the end of the step before it to its own end
    kHead = 1,   ///< before the first step begins (its gap is not known)
    kTail = 2,   ///< after the last step
    kWhole = 3,  ///< a process in which no step was recognized
  };
  Kind kind = Kind::kStep;
  trace::ProcessRow process;
  trace::StepRow step;                  ///< where kind is kStep
  trace::Nanos begin = trace::kNoTime;  ///< kNoTime: from the start
  trace::Nanos end = trace::kNoTime;    ///< not included; kNoTime: to the end
};
std::string_view Name(Segment::Kind kind);

/// Segments of all traced processes. Order: by process, then time. Processes of services (OTLP) were not traced and
/// have none; overlapping steps are cut where the later one begins.
std::vector<Segment> SegmentsOf(const trace::Store& store, const trace::Trees& trees);

/// An ordered forest in pre-order, one entry a node. Nodes are spans, or structure that says where they ran: a `thread`
/// node over what one thread did (threads of one name share a node, in time order: which thread of a pool serves a call
/// is chance), a `stream` node over GPU work whose launch is not in the forest. Children of a call: first the GPU work
/// that it launched, by stream and time, then its calls in time order.
struct Forest {
  std::vector<uint32_t> symbol;      ///< row of SymbolTable
  std::vector<uint32_t> depth;       ///< 0 = root; a node's depth is at most that of the node before it, plus one
  std::vector<trace::SpanRow> span;  ///< none for structure nodes and log records
  std::vector<trace::Nanos> total;   ///< of structure nodes: sum over their children
  std::vector<trace::Nanos> self;    ///< total less that of children on the same lane, >= 0; 0 of structure nodes
  uint32_t structure = 0;            ///< nodes that are no spans

  size_t size() const { return symbol.size(); }
};

/// The symbols of a run, numbered by first use. Threads: confined.
class SymbolTable {
 public:
  uint32_t Row(const Symbol& symbol);
  const Symbol& At(uint32_t row) const { return symbols_[row]; }
  size_t size() const { return symbols_.size(); }

 private:
  std::vector<Symbol> symbols_;
  std::unordered_map<std::string, uint32_t> rows_;  // by layer and name
};

/// Makes forests of one run. Pure but for the symbol table, to which it adds. Threads: confined.
/// Cost: O(log spans + n log n) for a segment of n nodes and spans that begin in it, whatever the number of tracks;
/// O(launches log launches + spans log tracks) once, and 4 bytes a span for it. No recursion over depth.
class ForestBuilder {
 public:
  ForestBuilder(const trace::Store& store, const trace::Trees& trees, SymbolTable& table);

  Forest Build(const Segment& segment);
  /// Spans of traced processes: what the forests of all segments hold together.
  uint64_t traced_spans() const;
  /// Spans that were looked at so far to find what is in the segments: all that is not spent on their nodes.
  uint64_t visits() const { return visits_; }
  /// The nodes of a causal slice: ancestors, calls and GPU work as in the run as far as they are in the slice, other
  /// ranks' spans and log records as roots of their own, in time order.
  Forest Build(const slice::Slice& slice);

 private:
  /// Spans of one track that begin in a segment: rows [first, last).
  struct Lane {
    uint32_t track = 0;
    uint32_t first = 0;
    uint32_t last = 0;
  };
  struct Root {
    uint32_t row = 0;
    uint32_t lane = 0;
  };

  uint32_t RowOf(uint32_t span);
  void AddNode(uint32_t span, uint32_t depth, Forest& forest);
  void AddStructure(Layer layer, const std::string& name, Forest& forest);
  void AddWork(uint32_t launch, uint32_t depth, Forest& forest);
  void AddRoots(std::vector<Root> roots, const std::vector<Lane>& lanes, Forest& forest);
  void AddThreads(const std::vector<Lane>& lanes, uint32_t main_track, Forest& forest);
  void AddStreams(const std::vector<Lane>& lanes, Forest& forest);
  void SortByTime();
  void FindLanes(const Segment& segment, std::vector<Lane>& threads, std::vector<Lane>& streams);
  std::vector<Root> RootsOf(const std::vector<Lane>& lanes) const;
  uint32_t MainTrack(const Segment& segment) const;

  const trace::Store& store_;
  const trace::Trees& trees_;
  SymbolTable& table_;
  Symbols symbols_;
  std::unordered_map<uint64_t, uint32_t> known_;     // name and kind -> row of the table
  std::vector<std::pair<uint32_t, uint32_t>> work_;  // (launch, work): by launch, then stream and time
  std::vector<bool> linked_;                         // by span: GPU work whose launch is in the run
  std::vector<uint32_t> by_time_;                    // span rows: by process, begin, row
  std::vector<size_t> process_first_;  // by process: position of its first in by_time_; one more at the end
  std::vector<uint32_t> busiest_;      // by process: the thread with the most spans
  std::vector<uint32_t> lane_of_;      // by track; scratch, kNone outside of a call
  uint64_t visits_ = 0;
  std::vector<trace::Nanos> child_time_;              // by span: time of its children on the same lane
  std::vector<uint32_t> first_child_, next_sibling_;  // by span; scratch, kNone outside of a call
};

}  // namespace teller::encode
