#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/string_pool.hpp"
#include "trace/comm_perf.hpp"
#include "trace/comm_topology.hpp"
#include "trace/counter.hpp"
#include "trace/learned_graphs.hpp"
#include "trace/log_record.hpp"
#include "trace/request.hpp"
#include "trace/sparse_column.hpp"
#include "trace/types.hpp"

namespace teller::trace {

/// One input file and what became of its records.
/// Conservation: records_read == spans + instants + counters + flows + metadata + repaired_away + dropped.
struct File {
  std::string path;  ///< as given, relative to the run directory when there is one
  /// "kineto", "nsys", "flight-recorder", "nccl-inspector", "otlp", "prometheus", "host-counters", "log",
  /// "log-arrival", "graphs", "other"
  std::string kind;
  std::optional<int> rank;
  uint64_t bytes = 0;         ///< after decompression
  uint64_t records_read = 0;  ///< events, or log lines
  uint64_t spans = 0;
  uint64_t instants = 0;
  uint64_t counters = 0;
  uint64_t flows = 0;
  uint64_t metadata = 0;       ///< records that set a name, a label or an order
  uint64_t repaired_away = 0;  ///< records that were joined into another one (an E into its B)
  uint64_t dropped = 0;        ///< each with a diagnostic
  uint64_t log_records = 0;
  uint64_t requests = 0;  ///< statements about one request (Store::request_records)
  std::string note;       ///< why nothing was used, when so
};

/// One recorded process.
struct Process {
  FileRow file;
  std::string pid;             ///< as in the file; may be text
  std::string name;            ///< engine's own name without prefix ("Worker_TP0"); empty when the file tells none
  bool name_inferred = false;  ///< from its place in the run, not from the file
  std::optional<int> rank;
  std::optional<int> world_size;
  std::string engine;  ///< "vllm", "sglang", "llama.cpp", "torch", "" when unknown
  std::string host;
  bool service = false;  ///< known by what it reports of its requests (OTLP), not traced: its spans are no work
};

/// One lane of spans.
struct Track {
  ProcessRow process;
  std::string tid;  ///< as in the file
  std::string name;
  bool is_stream = false;   ///< GPU stream: its spans are GPU work
  int64_t stream = -1;      ///< stream number where is_stream
  uint32_t first_span = 0;  ///< spans of a track are contiguous: [first_span, first_span + span_count)
  uint32_t span_count = 0;
};

/// Args of framework operators and annotations that diagnosis uses.
struct OpArgs {
  StringId input_dims;       ///< JSON text of "Input Dims"; none when not recorded
  StringId input_types;      ///< JSON text of "Input type"
  StringId label;            ///< tensor or module label ("ffn_out-19"); none when not recorded
  uint32_t external_id = 0;  ///< 0 = none
};

/// Args of launches and GPU work. (process, correlation) finds the launch of a piece of GPU work; of the many that one
/// graph launch starts, the graph node tells which is which.
struct GpuArgs {
  uint64_t graph_node = 0;   ///< 0 = not from a graph
  uint32_t correlation = 0;  ///< 0 = none
  uint32_t external_id = 0;
  int32_t device = -1;
  int32_t stream = -1;
  int64_t bytes = -1;  ///< of copies and memsets
};

/// Args of interpreter frames.
struct PyArgs {
  uint32_t id = 0;
  uint32_t parent_id = 0;  ///< 0 = root
  uint32_t module_id = 0;  ///< nn.Module instance, 0 = none
};

/// Args of communication spans (record_param_comms, NCCL kernels).
struct CommArgs {
  StringId collective;   ///< "allreduce", ...
  StringId group;        ///< process group name
  StringId group_ranks;  ///< text as in the file
  StringId dtype;
  int64_t in_elements = -1;
  int64_t out_elements = -1;
  int64_t sequence = -1;
  int32_t group_size = -1;
  int32_t peer = -1;  ///< of a send or receive: the other rank of the job
};

/// Key of the attribute of a launch that names the kernel which it enqueues, where the file tells (ROCm).
inline constexpr std::string_view kKernelAttribute = "kernel";

/// A scalar arg of an annotation or of a span of unknown kind, as text; or the kernel that a launch enqueues.
struct Attribute {
  StringId key;
  StringId value;
};

/// Named point in time.
struct Instant {
  Nanos at = kNoTime;
  StringId name;
  TrackRow track;
};

/// One end of a flow arrow.
struct FlowEnd {
  Nanos at = kNoTime;
  uint64_t id = 0;
  StringId name;
  TrackRow track;
  char phase = 's';  ///< s, t or f
};

/// Spans as columns.
/// Order: by (track, begin ascending, end descending, input order); so a parent stands before its children.
/// Threads: immutable once the store is built.
struct Spans {
  std::vector<Nanos> begin;
  std::vector<Nanos> duration;  ///< >= 0
  std::vector<StringId> name;
  std::vector<TrackRow> track;
  std::vector<uint8_t> category;  ///< index into Store::categories
  std::vector<SpanRow> parent;    ///< on the same track; none = root. Filled by tree
  std::vector<uint16_t> depth;    ///< 0 = root. Filled by tree

  size_t size() const { return begin.size(); }
  Nanos end(size_t row) const { return begin[row] + duration[row]; }
};

/// A category name of the input and the kind it stands for.
struct Category {
  std::string name;
  SpanKind kind = SpanKind::kOther;
};

/// One rank's view of one collective in a communication library's own dump (NCCL Flight Recorder).
struct CommRecord {
  FileRow file;
  int rank = -1;
  std::string group;     ///< process group name
  int32_t members = -1;  ///< index into Store::comm_groups; -1 when not told
  int64_t sequence = -1;
  int64_t p2p_sequence = -1;
  std::string op;     ///< profiling name, "nccl:all_reduce"
  std::string state;  ///< "scheduled", "started", "completed"; or, without an op, the group's summary:
                      ///< "last-scheduled", "last-completed" with the sequence the rank came to
  std::string sizes;  ///< JSON text of input sizes and types; compared as text
  Nanos created = kNoTime;
  Nanos started = kNoTime;
  Nanos completed = kNoTime;
  std::string frame;  ///< innermost stack frame, "name (file:line)"
};

/// Everything that was read from a run. Built by ingest, completed by tree and align, then read only.
struct Store {
  base::StringPool strings;
  base::Diagnostics diagnostics;
  std::vector<File> files;
  std::vector<Process> processes;
  std::vector<Track> tracks;
  std::vector<Category> categories;

  Spans spans;
  SparseColumn<OpArgs> op_args;
  SparseColumn<GpuArgs> gpu_args;
  SparseColumn<PyArgs> py_args;
  SparseColumn<CommArgs> comm_args;
  SparseColumn<Attribute> attributes;  ///< several entries a span are possible

  std::vector<Instant> instants;
  std::vector<CounterSeries> counter_series;
  std::vector<CounterSample> counters;
  std::vector<FlowEnd> flows;
  std::vector<CommRecord> comm_records;
  std::vector<std::vector<int>> comm_groups;    ///< ranks of a group, one entry a dump and group: records share them
  std::vector<LogRecord> logs;                  ///< order: by file, then line
  std::vector<CommPerf> comm_perf;              ///< order: by file, then line
  SparseColumn<NcclWriter> nccl_writers;        ///< of the NCCL log lines, by log row
  std::vector<Communicator> communicators;      ///< order: by first line
  std::vector<RequestRecord> request_records;   ///< order: by file, then place in it
  std::vector<LearnedSequence> learned_graphs;  ///< order: by file, then place in it

  SpanKind kind(size_t span) const { return categories[spans.category[span]].kind; }
  std::string_view text(StringId id) const { return strings.Text(id); }
  std::string_view name(size_t span) const { return strings.Text(spans.name[span]); }
  const Track& track_of(size_t span) const { return tracks[spans.track[span].value()]; }
  const Process& process_of(size_t span) const { return processes[track_of(span).process.value()]; }
};

}  // namespace teller::trace
