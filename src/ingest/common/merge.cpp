#include "ingest/common/merge.hpp"

#include <algorithm>
#include <tuple>

namespace teller::ingest {

namespace {

constexpr uint64_t kPieceSpans = 1u << 16;  // enough to keep threads busy, small enough to free blocks early

/// Order of spans: begin, end descending, input order.
auto KeyAt(const Source& source, uint32_t row) {
  const trace::Nanos begin = source.block->begin[row];
  return std::tuple(begin, -(begin + source.block->duration[row]), source.block_order);
}

/// Appends each source to the run whose end it follows most closely; a new run when it follows none.
std::vector<std::vector<Source>> FindRuns(const std::vector<Source>& sources) {
  std::vector<std::vector<Source>> runs;
  for (const Source& source : sources) {
    const auto front = KeyAt(source, source.first);
    std::vector<Source>* best = nullptr;
    for (auto& run : runs) {
      const auto back = KeyAt(run.back(), run.back().last - 1);
      if (back <= front && (best == nullptr || back > KeyAt(best->back(), best->back().last - 1))) best = &run;
    }
    if (best == nullptr) best = &runs.emplace_back();
    best->push_back(source);
  }
  return runs;
}

/// Begin times that cut the longest run into equal parts.
std::vector<trace::Nanos> Pivots(const std::vector<std::vector<Source>>& runs, uint64_t pieces) {
  const auto length = [](const std::vector<Source>& run) {
    uint64_t n = 0;
    for (const auto& source : run) n += source.last - source.first;
    return n;
  };
  const auto& longest = *std::max_element(runs.begin(), runs.end(),
                                          [&length](const auto& a, const auto& b) { return length(a) < length(b); });
  const uint64_t total = length(longest);
  std::vector<trace::Nanos> pivots;
  uint64_t passed = 0;
  for (const auto& source : longest) {
    const uint64_t n = source.last - source.first;
    while (pivots.size() + 1 < pieces && (pivots.size() + 1) * total / pieces < passed + n) {
      const uint64_t at = (pivots.size() + 1) * total / pieces - passed;
      pivots.push_back(source.block->begin[source.first + at]);
    }
    passed += n;
  }
  return pivots;
}

/// Takes from the front of `run` (position `at`, `row`) what begins before `pivot`.
std::vector<Source> TakeBefore(const std::vector<Source>& run, size_t& at, uint32_t& row, const trace::Nanos* pivot) {
  std::vector<Source> taken;
  while (at < run.size()) {
    const Source& source = run[at];
    uint32_t last = source.last;
    if (pivot != nullptr) {
      const trace::Nanos* begin = source.block->begin;
      last = static_cast<uint32_t>(std::lower_bound(begin + row, begin + source.last, *pivot) - begin);
    }
    if (last > row) taken.push_back({source.block, source.block_order, row, last});
    row = last;
    if (last < source.last) break;
    if (++at < run.size()) row = run[at].first;
  }
  return taken;
}

template <class T>
uint32_t ArgAt(const BlockArgs<T>& args, uint32_t row) {
  return static_cast<uint32_t>(std::lower_bound(args.rows, args.rows + args.count, row) - args.rows);
}

/// Reads one run.
class Cursor {
 public:
  explicit Cursor(const std::vector<Source>& run) : it_(run.data()), end_(run.data() + run.size()) { Enter(); }

  bool done() const { return it_ == end_; }
  auto key() const { return KeyAt(*it_, row_); }
  const Block& block() const { return *it_->block; }
  uint32_t row() const { return row_; }
  void Advance() {
    if (++row_ == it_->last) {
      ++it_;
      Enter();
    }
  }

  uint32_t op = 0, gpu = 0, py = 0, comm = 0, attributes = 0;  ///< next args of the block

 private:
  void Enter() {
    if (it_ == end_) return;
    row_ = it_->first;
    const Block& b = *it_->block;
    op = ArgAt(b.op, row_);
    gpu = ArgAt(b.gpu, row_);
    py = ArgAt(b.py, row_);
    comm = ArgAt(b.comm, row_);
    attributes = ArgAt(b.attributes, row_);
  }

  const Source* it_;
  const Source* end_;
  uint32_t row_ = 0;
};

/// Writes rows one after the other.
class Writer {
 public:
  Writer(const Piece& piece, trace::Store& store)
      : piece_(piece), store_(store), span_(piece.first_span), at_(piece.args) {}

  void Write(Cursor& from, const IdMaps& map) {
    const Block& b = from.block();
    const uint32_t row = from.row();
    auto& spans = store_.spans;
    spans.begin[span_] = b.begin[row] + piece_.base_time;
    spans.duration[span_] = piece_.durations ? b.duration[row] : 0;
    spans.name[span_] = map.strings[b.name[row]];
    spans.track[span_] = piece_.track;
    const size_t used = std::min<size_t>(b.category[row], b.used_categories.size() - 1);
    spans.category[span_] = map.categories[b.used_categories[used]];
    if (b.has[row] != 0) WriteArgs(from, map);
    ++span_;
  }

 private:
  void WriteArgs(Cursor& from, const IdMaps& map) {
    const Block& b = from.block();
    const uint8_t has = b.has[from.row()];
    const auto text = [&map](trace::StringId id) { return id.valid() ? map.strings[id.value()] : id; };
    if ((has & Block::kHasOp) != 0) {
      trace::OpArgs args = b.op.values[from.op++];
      args.input_dims = text(args.input_dims);
      args.input_types = text(args.input_types);
      args.label = text(args.label);
      Put(store_.op_args, at_.op++, args);
    }
    if ((has & Block::kHasGpu) != 0) Put(store_.gpu_args, at_.gpu++, b.gpu.values[from.gpu++]);
    if ((has & Block::kHasPy) != 0) Put(store_.py_args, at_.py++, b.py.values[from.py++]);
    if ((has & Block::kHasComm) != 0) {
      trace::CommArgs args = b.comm.values[from.comm++];
      args.collective = text(args.collective);
      args.group = text(args.group);
      args.group_ranks = text(args.group_ranks);
      args.dtype = text(args.dtype);
      Put(store_.comm_args, at_.comm++, args);
    }
    for (; from.attributes < b.attributes.count && b.attributes.rows[from.attributes] == from.row();
         ++from.attributes) {
      const trace::Attribute& attribute = b.attributes.values[from.attributes];
      Put(store_.attributes, at_.attributes++, trace::Attribute{text(attribute.key), text(attribute.value)});
    }
  }

  template <class T>
  void Put(trace::SparseColumn<T>& column, uint64_t at, const T& value) {
    column.rows()[at] = static_cast<uint32_t>(span_);
    column.values()[at] = value;
  }

  const Piece& piece_;
  trace::Store& store_;
  uint64_t span_;
  ArgOffsets at_;
};

}  // namespace

std::vector<Piece> CutTrack(trace::TrackRow track, const std::vector<Source>& sources) {
  std::vector<Piece> pieces;
  if (sources.empty()) return pieces;
  const auto runs = FindRuns(sources);
  uint64_t total = 0;
  for (const auto& source : sources) total += source.last - source.first;
  const auto pivots = Pivots(runs, std::max<uint64_t>(1, total / kPieceSpans));
  std::vector<size_t> at(runs.size(), 0);
  std::vector<uint32_t> row;
  for (const auto& run : runs) row.push_back(run.front().first);
  for (size_t i = 0; i <= pivots.size(); ++i) {
    Piece piece;
    piece.track = track;
    for (size_t r = 0; r < runs.size(); ++r) {
      auto taken = TakeBefore(runs[r], at[r], row[r], i < pivots.size() ? &pivots[i] : nullptr);
      if (!taken.empty()) piece.runs.push_back(std::move(taken));
    }
    if (!piece.runs.empty()) pieces.push_back(std::move(piece));
  }
  return pieces;
}

uint64_t SpanCount(const Piece& piece) {
  uint64_t n = 0;
  for (const auto& run : piece.runs) {
    for (const auto& source : run) n += source.last - source.first;
  }
  return n;
}

ArgOffsets ArgCounts(const Piece& piece) {
  ArgOffsets n;
  const auto between = [](const auto& args, const Source& s) { return ArgAt(args, s.last) - ArgAt(args, s.first); };
  for (const auto& run : piece.runs) {
    for (const auto& source : run) {
      n.op += between(source.block->op, source);
      n.gpu += between(source.block->gpu, source);
      n.py += between(source.block->py, source);
      n.comm += between(source.block->comm, source);
      n.attributes += between(source.block->attributes, source);
    }
  }
  return n;
}

void MergePiece(const Piece& piece, const std::vector<IdMaps>& maps, trace::Store& store) {
  std::vector<Cursor> cursors;
  std::vector<Cursor*> heap;  // smallest key on top
  cursors.reserve(piece.runs.size());
  for (const auto& run : piece.runs) heap.push_back(&cursors.emplace_back(run));
  const auto later = [](const Cursor* a, const Cursor* b) { return a->key() > b->key(); };
  std::make_heap(heap.begin(), heap.end(), later);
  Writer writer(piece, store);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Cursor& smallest = *heap.back();
    // Runs are long: go on with the same one as long as it stays the smallest.
    while (!smallest.done() && (heap.size() == 1 || smallest.key() <= heap.front()->key())) {
      writer.Write(smallest, maps[smallest.block().worker]);
      smallest.Advance();
    }
    if (smallest.done()) {
      heap.pop_back();
    } else {
      std::push_heap(heap.begin(), heap.end(), later);
    }
  }
}

}  // namespace teller::ingest
