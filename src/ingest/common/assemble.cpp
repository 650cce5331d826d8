#include "ingest/common/assemble.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/memory.hpp"
#include "base/parallel.hpp"
#include "ingest/common/decimal.hpp"
#include "ingest/common/merge.hpp"

namespace teller::ingest {

namespace {

using base::DiagnosticKind;
using base::Severity;

constexpr DiagnosticKind kAbsurdTotal = {
    "trace.absurd_total", Severity::kDataLoss,
    "the durations of a file add up to more than a century; all its spans were kept with duration 0"};
constexpr DiagnosticKind kTooManyCategories = {"trace.too_many_categories", Severity::kNotice,
                                               "more categories than can be told apart; the rest share one"};
constexpr DiagnosticKind kTooManySpans = {"trace.too_many_spans", Severity::kDataLoss,
                                          "more spans than one run can hold; the rest was dropped"};

constexpr size_t kMaxCategories = 255;  // Spans::category has 8 bits; the last one is for all that do not fit

/// Lanes of one file, numbered as tracks.
class LaneNumbering {
 public:
  /// Notes the lanes that a block uses.
  void Note(const Block& block, const Worker& worker) {
    for (const uint32_t lane : block.used_lanes) Entry(worker.lanes.Text(lane));
    for (const auto& segment : block.segments) {
      auto& entry = Entry(worker.lanes.Text(segment.lane));
      entry.has_spans = true;
      if (entry.stream < 0) entry.stream = segment.stream;
    }
  }

  /// Makes tracks of the lanes noted. A lane without spans that has a device twin (flow ends name the device's pid and
  /// tid without saying so) becomes the twin.
  void MakeTracks(trace::Store& store) {
    for (auto& entry : entries_) {
      const LaneKey key = LaneKey::Unpack(entry.packed);
      if (!entry.has_spans && !key.device) {
        const auto twin = index_.find(LaneKey::Pack(key.pid, key.tid, true));
        if (twin != index_.end() && entries_[twin->second].has_spans) {
          entry.twin = twin->second;
          continue;
        }
      }
      entry.track = trace::TrackRow(static_cast<uint32_t>(store.tracks.size()));
      store.tracks.push_back({.process = {},
                              .tid = std::string(key.tid),
                              .name = {},
                              .is_stream = key.device,
                              .stream = key.device ? entry.stream : -1});
      pids_.push_back(std::string(key.pid));
    }
    for (auto& entry : entries_) {
      if (entry.twin != kNoTwin) entry.track = entries_[entry.twin].track;
    }
  }

  trace::TrackRow Track(std::string_view packed) { return Entry(packed).track; }
  /// Pid of each track made, in order.
  std::vector<std::string>& pids() { return pids_; }

 private:
  static constexpr size_t kNoTwin = static_cast<size_t>(-1);
  struct LaneEntry {
    std::string packed;
    bool has_spans = false;
    int64_t stream = -1;
    size_t twin = kNoTwin;
    trace::TrackRow track = {};
  };

  LaneEntry& Entry(std::string_view packed) {
    const auto [it, added] = index_.try_emplace(std::string(packed), entries_.size());
    if (added) entries_.push_back({.packed = std::string(packed)});
    return entries_[it->second];
  }

  std::unordered_map<std::string, size_t> index_;
  std::vector<LaneEntry> entries_;
  std::vector<std::string> pids_;
};

/// Numbers strings and categories of a block in the store.
void NumberTexts(const Block& block, const Worker& worker, IdMaps& map, trace::Store& store) {
  map.strings.resize(worker.strings.size());
  for (const uint32_t id : block.used_strings) {
    if (!map.strings[id].valid()) map.strings[id] = store.strings.Intern(worker.strings.Text(id));
  }
  map.categories.resize(worker.categories.size(), 0);
  for (const uint32_t id : block.used_categories) {
    const std::string_view text = worker.categories.Text(id);
    const trace::SpanKind kind = worker.kinds[id];  // formats may disagree on what a name stands for
    auto it = std::find_if(store.categories.begin(), store.categories.end(), [text, kind](const auto& category) {
      return category.name == text && category.kind == kind;
    });
    if (it == store.categories.end()) {
      if (store.categories.size() >= kMaxCategories) {
        store.diagnostics.Report(kTooManyCategories, {}, {});
        if (store.categories.size() == kMaxCategories) store.categories.push_back({"(other categories)"});
        map.categories[id] = kMaxCategories;
        continue;
      }
      store.categories.push_back({std::string(text), kind});
      it = store.categories.end() - 1;
    }
    map.categories[id] = static_cast<uint8_t>(it - store.categories.begin());
  }
}

/// Instants, flows and counters of one block, and where they go. Lanes are resolved before, so that jobs are
/// independent.
struct PointJob {
  Block* block = nullptr;
  trace::Nanos base_time = 0;
  std::unordered_map<uint32_t, trace::TrackRow> tracks;  // of the lanes used
  size_t instant = 0;
  size_t flow = 0;
  size_t counter = 0;
};

void CopyPoints(PointJob& job, const std::vector<IdMaps>& maps, trace::Store& store) {
  Block& block = *job.block;
  const IdMaps& map = maps[block.worker];
  for (const auto& point : block.instants) {
    store.instants[job.instant++] = {point.at + job.base_time, map.strings[point.name], job.tracks[point.lane]};
  }
  for (const auto& flow : block.flows) {
    store.flows[job.flow++] = {flow.at + job.base_time, flow.id, map.strings[flow.name], job.tracks[flow.lane],
                               flow.phase};
  }
  for (const auto& sample : block.counters) {
    // A series is made once processes are known; until then name and track stand in for its row and the scrape.
    store.counters[job.counter++] = {sample.at + job.base_time, trace::CounterRow(map.strings[sample.name].value()),
                                     job.tracks[sample.lane].value(), sample.value};
  }
  block.instants = {};
  block.flows = {};
  block.counters = {};
}

/// Copies the points of all blocks in order.
void CopyAllPoints(std::vector<PointJob>& jobs, const std::vector<IdMaps>& maps, trace::Store& store,
                   unsigned threads) {
  size_t instants = store.instants.size();
  size_t flows = store.flows.size();
  size_t counters = store.counters.size();
  for (auto& job : jobs) {
    job.instant = std::exchange(instants, instants + job.block->instants.size());
    job.flow = std::exchange(flows, flows + job.block->flows.size());
    job.counter = std::exchange(counters, counters + job.block->counters.size());
  }
  store.instants.resize(instants);
  store.flows.resize(flows);
  store.counters.resize(counters);
  base::ParallelFor(threads, jobs.size(), [&](size_t i) { CopyPoints(jobs[i], maps, store); });
}

/// Drops spans of blocks beyond the limit of row numbers.
void LimitSpans(FileParts& parts, uint64_t max_spans, uint64_t& total, trace::Store& store) {
  for (auto& block : parts.blocks) {
    if (total + block->spans > max_spans) {
      store.diagnostics.Report(kTooManySpans, parts.file, {}, block->spans);
      block->tally.dropped += block->tally.spans;
      block->tally.spans = 0;
      block->segments.clear();
      block->spans = 0;
    }
    total += block->spans;
  }
}

template <class T>
void Resize(T& vector, size_t n) {
  vector.reserve(n);
  base::AdviseHugePages(vector.data(), n * sizeof(*vector.data()));
  vector.resize(n);
}

void ResizeColumns(trace::Store& store, uint64_t spans, const ArgOffsets& args, unsigned threads) {
  const std::vector<std::function<void()>> columns = {
      [&] { Resize(store.spans.begin, spans); },
      [&] { Resize(store.spans.duration, spans); },
      [&] { Resize(store.spans.name, spans); },
      [&] { Resize(store.spans.track, spans); },
      [&] { Resize(store.spans.category, spans); },
      [&] { Resize(store.op_args.values(), args.op); },
      [&] { Resize(store.op_args.rows(), args.op); },
      [&] { Resize(store.gpu_args.values(), args.gpu); },
      [&] { Resize(store.gpu_args.rows(), args.gpu); },
      [&] { Resize(store.py_args.values(), args.py); },
      [&] { Resize(store.py_args.rows(), args.py); },
      [&] { Resize(store.comm_args.values(), args.comm); },
      [&] { Resize(store.comm_args.rows(), args.comm); },
      [&] { Resize(store.attributes.values(), args.attributes); },
      [&] { Resize(store.attributes.rows(), args.attributes); },
  };
  base::ParallelFor(threads, columns.size(), [&columns](size_t i) { columns[i](); });
}

/// Gives every piece its place behind what the store holds already, tracks their rows. Returns the totals.
ArgOffsets PlacePieces(std::vector<Piece>& pieces, trace::Store& store, uint64_t& spans) {
  ArgOffsets at = {store.op_args.size(), store.gpu_args.size(), store.py_args.size(), store.comm_args.size(),
                   store.attributes.size()};
  for (auto& piece : pieces) {
    const uint64_t count = SpanCount(piece);
    const ArgOffsets counts = ArgCounts(piece);
    piece.first_span = spans;
    piece.args = at;
    auto& track = store.tracks[piece.track.value()];
    if (track.span_count == 0) track.first_span = static_cast<uint32_t>(spans);
    track.span_count += static_cast<uint32_t>(count);
    spans += count;
    at.op += counts.op;
    at.gpu += counts.gpu;
    at.py += counts.py;
    at.comm += counts.comm;
    at.attributes += counts.attributes;
    for (const auto& run : piece.runs) {
      for (const auto& source : run) source.block->pending_uses.fetch_add(1, std::memory_order_relaxed);
    }
  }
  return at;
}

/// Pieces in the order of their place in time, so that blocks, which hold all tracks of a time range, go early.
std::vector<size_t> WorkOrder(const std::vector<Piece>& pieces) {
  std::vector<std::pair<trace::Nanos, size_t>> keyed;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Source& source = pieces[i].runs.front().front();
    keyed.emplace_back(source.block->begin[source.first] + pieces[i].base_time, i);
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<size_t> order;
  for (const auto& [begin, i] : keyed) order.push_back(i);
  return order;
}

void Release(const Piece& piece) {
  for (const auto& run : piece.runs) {
    for (const auto& source : run) {
      if (source.block->pending_uses.fetch_sub(1) == 1) source.block->memory.reset();
    }
  }
}

/// What is to be copied where, before anything is.
struct Plan {
  std::vector<IdMaps> maps;  // by worker
  std::vector<Piece> pieces;
  std::vector<PointJob> points;
  Assembled out;
};

/// Numbers the texts and lanes of one file and plans the copying of its blocks.
void PlanFile(FileParts& parts, const std::vector<std::unique_ptr<Worker>>& workers, Plan& plan, trace::Store& store) {
  LaneNumbering lanes;
  for (const auto& block : parts.blocks) {
    NumberTexts(*block, *workers[block->worker], plan.maps[block->worker], store);
    lanes.Note(*block, *workers[block->worker]);
  }
  const size_t first_track = store.tracks.size();
  lanes.MakeTracks(store);
  std::vector<std::vector<Source>> sources(store.tracks.size() - first_track);  // of each track
  auto& file = store.files[parts.file.value()];
  for (uint32_t b = 0; b < parts.blocks.size(); ++b) {
    Block& block = *parts.blocks[b];
    const Worker& worker = *workers[block.worker];
    auto& job = plan.points.emplace_back();
    job.block = &block;
    job.base_time = parts.base_time;
    for (const uint32_t lane : block.used_lanes) job.tracks[lane] = lanes.Track(worker.lanes.Text(lane));
    block.tally.AddTo(file);
    store.diagnostics.Merge(block.diagnostics);
    for (const auto& segment : block.segments) {
      const uint32_t track = job.tracks[segment.lane].value();
      sources[track - first_track].push_back({&block, b, segment.first, segment.first + segment.count});
    }
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    for (auto& piece : CutTrack(trace::TrackRow(static_cast<uint32_t>(first_track + i)), sources[i])) {
      piece.base_time = parts.base_time;
      piece.durations = parts.durations;
      plan.pieces.push_back(std::move(piece));
    }
  }
  auto& pids = plan.out.pids;
  pids.insert(pids.end(), lanes.pids().begin(), lanes.pids().end());
}

}  // namespace

void CheckTotal(FileParts& parts, trace::Nanos limit, base::Diagnostics& diagnostics) {
  trace::Nanos total = 0;
  for (const auto& block : parts.blocks) total = std::min(kMaxNanos, total + block->total);
  parts.durations = total < limit;
  if (!parts.durations) diagnostics.Report(kAbsurdTotal, parts.file, {});
}

Assembled Assemble(std::vector<FileParts>& files, const std::vector<std::unique_ptr<Worker>>& workers,
                   trace::Store& store, unsigned threads, uint64_t max_spans) {
  Plan plan;
  plan.maps.resize(workers.size());
  plan.out.pids.resize(store.tracks.size());
  uint64_t total = store.spans.size();
  for (auto& parts : files) {
    plan.out.first_tracks.push_back(store.tracks.size());
    LimitSpans(parts, max_spans, total, store);
    PlanFile(parts, workers, plan, store);
  }
  plan.out.first_tracks.push_back(store.tracks.size());
  CopyAllPoints(plan.points, plan.maps, store, threads);
  uint64_t spans = store.spans.size();
  const ArgOffsets args = PlacePieces(plan.pieces, store, spans);
  ResizeColumns(store, spans, args, threads);
  const auto order = WorkOrder(plan.pieces);
  base::ParallelFor(threads, order.size(), [&](size_t i) {
    MergePiece(plan.pieces[order[i]], plan.maps, store);
    Release(plan.pieces[order[i]]);
  });
  return std::move(plan.out);
}

}  // namespace teller::ingest
