#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "ingest/common/worker.hpp"
#include "trace/store.hpp"

namespace teller::ingest {

inline constexpr uint32_t kNoArgs = UINT32_MAX;

/// A span as it comes out of the parser; ids are the worker's.
struct DraftSpan {
  trace::Nanos begin = 0;  ///< without the file's base time
  trace::Nanos duration = 0;
  uint32_t name = 0;
  uint32_t lane = 0;
  uint32_t op = kNoArgs;  ///< index into Draft::op; likewise below
  uint32_t gpu = kNoArgs;
  uint32_t py = kNoArgs;
  uint32_t comm = kNoArgs;
  uint32_t attributes = kNoArgs;  ///< first of attribute_count
  uint32_t attribute_count = 0;
  uint32_t category = 0;
  char phase = 'X';  ///< X, or B/E to be paired
};

struct DraftInstant {
  trace::Nanos at = 0;
  uint32_t name = 0;
  uint32_t lane = 0;
};

struct DraftCounter {
  trace::Nanos at = 0;
  double value = 0;
  uint32_t name = 0;
  uint32_t lane = 0;
};

struct DraftFlow {
  trace::Nanos at = 0;
  uint64_t id = 0;
  uint32_t name = 0;
  uint32_t lane = 0;
  char phase = 's';
};

/// A metadata event that names something.
struct Naming {
  enum class What : uint8_t { kProcess, kProcessLabels, kThread };
  What what = What::kProcess;
  std::string pid;
  std::string tid;
  std::string text;
};

/// Events of a window by what they became, as in trace::File.
struct Tally {
  uint64_t read = 0;
  uint64_t spans = 0;
  uint64_t instants = 0;
  uint64_t counters = 0;
  uint64_t flows = 0;
  uint64_t metadata = 0;
  uint64_t repaired_away = 0;
  uint64_t dropped = 0;

  void AddTo(trace::File& file) const;
};

/// All that was parsed from a window, in input order. Reused.
struct Draft {
  std::vector<DraftSpan> spans;
  std::vector<DraftSpan> marks;  ///< B and E
  std::vector<trace::OpArgs> op;
  std::vector<trace::GpuArgs> gpu;
  std::vector<trace::PyArgs> py;
  std::vector<trace::CommArgs> comm;
  std::vector<trace::Attribute> attributes;
  std::vector<DraftInstant> instants;
  std::vector<DraftCounter> counters;
  std::vector<DraftFlow> flows;
  std::vector<Naming> namings;
  Tally tally;
  base::Diagnostics diagnostics;

  void Clear();
};

/// Args of one type of a block, ordered by the block's span rows.
template <class T>
struct BlockArgs {
  const uint32_t* rows = nullptr;
  const T* values = nullptr;
  uint32_t count = 0;
};

/// A block's spans of one lane: [first, first + count), sorted by (begin, end descending, input order).
struct Segment {
  uint32_t lane = 0;
  uint32_t first = 0;
  uint32_t count = 0;
  uint16_t kinds = 0;   ///< bit per SpanKind
  int64_t stream = -1;  ///< args.stream of its spans
};

/// A window's content, compact and sorted, waiting for the merge. Immutable once built, released when merged.
struct Block {
  uint32_t worker = 0;
  uint32_t spans = 0;
  trace::Nanos latest = 0;  ///< latest end of a span; at least 0
  trace::Nanos total = 0;   ///< sum of the durations, at most kMaxNanos
  const trace::Nanos* begin = nullptr;
  const trace::Nanos* duration = nullptr;
  const uint32_t* name = nullptr;
  const uint8_t* has = nullptr;       ///< which args a span has, kHas bits
  const uint8_t* category = nullptr;  ///< index into used_categories
  BlockArgs<trace::OpArgs> op;
  BlockArgs<trace::GpuArgs> gpu;
  BlockArgs<trace::PyArgs> py;
  BlockArgs<trace::CommArgs> comm;
  BlockArgs<trace::Attribute> attributes;
  std::vector<Segment> segments;
  std::shared_ptr<char> memory;  ///< of all the columns above

  std::vector<uint32_t> used_strings;
  std::vector<uint32_t> used_lanes;
  std::vector<uint32_t> used_categories;
  std::vector<DraftSpan> marks;
  std::vector<DraftInstant> instants;
  std::vector<DraftCounter> counters;
  std::vector<DraftFlow> flows;
  std::vector<Naming> namings;
  Tally tally;
  base::Diagnostics diagnostics;
  std::atomic<uint32_t> pending_uses = 0;  ///< merge pieces that still need it

  static constexpr uint8_t kHasOp = 1;
  static constexpr uint8_t kHasGpu = 2;
  static constexpr uint8_t kHasPy = 4;
  static constexpr uint8_t kHasComm = 8;
  static constexpr uint8_t kHasAttributes = 16;
};

/// Sorts and packs a draft.
class BlockBuilder {
 public:
  std::unique_ptr<Block> Build(Draft& draft, Worker& worker, uint32_t worker_index);

 private:
  void Order(const Draft& draft, Block& block);
  void Pack(const Draft& draft, const Worker& worker, Block& block, Worker& arena_owner);

  std::vector<uint32_t> order_;      // block row -> draft index
  std::vector<uint32_t> lane_slot_;  // worker lane -> position in used lanes
  std::vector<uint32_t> category_slot_;
};

}  // namespace teller::ingest
