#include "ingest/common/block.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "ingest/common/decimal.hpp"

namespace teller::ingest {

std::string LaneKey::Pack(std::string_view pid, std::string_view tid, bool device) {
  std::string packed;
  packed.reserve(pid.size() + tid.size() + 2);
  packed.append(pid).push_back('\0');
  packed.append(tid).push_back(device ? 'd' : 'h');
  return packed;
}

LaneKey LaneKey::Unpack(std::string_view packed) {
  const size_t split = packed.find('\0');
  return {packed.substr(0, split), packed.substr(split + 1, packed.size() - split - 2), packed.back() == 'd'};
}

void Tally::AddTo(trace::File& file) const {
  file.records_read += read;
  file.spans += spans;
  file.instants += instants;
  file.counters += counters;
  file.flows += flows;
  file.metadata += metadata;
  file.repaired_away += repaired_away;
  file.dropped += dropped;
}

void Draft::Clear() {
  spans.clear();
  marks.clear();
  op.clear();
  gpu.clear();
  py.clear();
  comm.clear();
  attributes.clear();
  instants.clear();
  counters.clear();
  flows.clear();
  namings.clear();
  tally = {};
  diagnostics = {};
}

namespace {

auto Key(const DraftSpan& span) {
  return std::tuple(span.begin, -(span.begin + span.duration));
}

/// Carves typed arrays out of one allocation.
class Carver {
 public:
  explicit Carver(char* at) : at_(at) {}
  template <class T>
  T* Take(size_t n) {
    T* out = reinterpret_cast<T*>(at_);
    at_ += Bytes<T>(n);
    return out;
  }
  template <class T>
  static size_t Bytes(size_t n) {
    return (n * sizeof(T) + 15) / 16 * 16;
  }

 private:
  char* at_;
};

template <class T>
size_t ArgBytes(size_t n) {
  return Carver::Bytes<uint32_t>(n) + Carver::Bytes<T>(n);
}

/// Fills one BlockArgs while rows are walked in order.
template <class T>
class ArgWriter {
 public:
  ArgWriter(Carver& carver, size_t n, BlockArgs<T>& out)
      : rows_(carver.Take<uint32_t>(n)), values_(carver.Take<T>(n)), out_(out) {
    out_.rows = rows_;
    out_.values = values_;
  }
  void Add(uint32_t row, const T& value) {
    rows_[out_.count] = row;
    values_[out_.count++] = value;
  }

 private:
  uint32_t* rows_;
  T* values_;
  BlockArgs<T>& out_;
};

}  // namespace

/// Stable distribution by lane (order of first use), then a sort of the lanes that need one; most do not.
void BlockBuilder::Order(const Draft& draft, Block& block) {
  const auto& lanes = block.used_lanes;
  std::vector<uint32_t> counts(lanes.size(), 0);
  for (uint32_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i] >= lane_slot_.size()) lane_slot_.resize(lanes[i] * 2 + 16);
    lane_slot_[lanes[i]] = i;
  }
  for (const auto& span : draft.spans) ++counts[lane_slot_[span.lane]];
  uint32_t at = 0;
  std::vector<uint32_t> next(lanes.size());
  for (size_t i = 0; i < lanes.size(); ++i) {
    next[i] = at;
    if (counts[i] > 0) block.segments.push_back({.lane = lanes[i], .first = at, .count = counts[i]});
    at += counts[i];
  }
  order_.resize(draft.spans.size());
  for (uint32_t i = 0; i < draft.spans.size(); ++i) order_[next[lane_slot_[draft.spans[i].lane]]++] = i;
  const auto before = [&draft](uint32_t a, uint32_t b) {
    return std::tuple(Key(draft.spans[a]), a) < std::tuple(Key(draft.spans[b]), b);
  };
  for (const auto& segment : block.segments) {
    const auto first = order_.begin() + segment.first;
    if (!std::is_sorted(first, first + segment.count, before)) std::sort(first, first + segment.count, before);
  }
}

void BlockBuilder::Pack(const Draft& draft, const Worker& worker, Block& block, Worker& arena_owner) {
  const size_t n = draft.spans.size();
  const size_t bytes = 2 * Carver::Bytes<trace::Nanos>(n) + Carver::Bytes<uint32_t>(n) + 2 * Carver::Bytes<uint8_t>(n) +
                       ArgBytes<trace::OpArgs>(draft.op.size()) + ArgBytes<trace::GpuArgs>(draft.gpu.size()) +
                       ArgBytes<trace::PyArgs>(draft.py.size()) + ArgBytes<trace::CommArgs>(draft.comm.size()) +
                       ArgBytes<trace::Attribute>(draft.attributes.size());
  block.memory = arena_owner.arena.Allocate(bytes);
  Carver carver(block.memory.get());
  auto* begin = carver.Take<trace::Nanos>(n);
  auto* duration = carver.Take<trace::Nanos>(n);
  auto* name = carver.Take<uint32_t>(n);
  auto* has = carver.Take<uint8_t>(n);
  auto* category = carver.Take<uint8_t>(n);
  ArgWriter op(carver, draft.op.size(), block.op);
  ArgWriter gpu(carver, draft.gpu.size(), block.gpu);
  ArgWriter py(carver, draft.py.size(), block.py);
  ArgWriter comm(carver, draft.comm.size(), block.comm);
  ArgWriter attributes(carver, draft.attributes.size(), block.attributes);
  for (auto& segment : block.segments) {
    for (uint32_t row = segment.first; row < segment.first + segment.count; ++row) {
      const DraftSpan& span = draft.spans[order_[row]];
      begin[row] = span.begin;
      duration[row] = span.duration;
      block.latest = std::max(block.latest, span.begin + span.duration);
      block.total = std::min(kMaxNanos, block.total + span.duration);
      name[row] = span.name;
      category[row] = static_cast<uint8_t>(category_slot_[span.category]);
      segment.kinds |= static_cast<uint16_t>(1u << static_cast<unsigned>(worker.kinds[span.category]));
      uint8_t bits = 0;
      if (span.op != kNoArgs) {
        bits |= Block::kHasOp;
        op.Add(row, draft.op[span.op]);
      }
      if (span.gpu != kNoArgs) {
        bits |= Block::kHasGpu;
        gpu.Add(row, draft.gpu[span.gpu]);
        if (segment.stream < 0) segment.stream = draft.gpu[span.gpu].stream;
      }
      if (span.py != kNoArgs) {
        bits |= Block::kHasPy;
        py.Add(row, draft.py[span.py]);
      }
      if (span.comm != kNoArgs) {
        bits |= Block::kHasComm;
        comm.Add(row, draft.comm[span.comm]);
      }
      if (span.attribute_count > 0) {
        bits |= Block::kHasAttributes;
        for (uint32_t i = 0; i < span.attribute_count; ++i) attributes.Add(row, draft.attributes[span.attributes + i]);
      }
      has[row] = bits;
    }
  }
  block.spans = static_cast<uint32_t>(n);
  block.begin = begin;
  block.duration = duration;
  block.name = name;
  block.has = has;
  block.category = category;
}

std::unique_ptr<Block> BlockBuilder::Build(Draft& draft, Worker& worker, uint32_t worker_index) {
  auto block = std::make_unique<Block>();
  block->worker = worker_index;
  block->used_strings = worker.strings.used();
  block->used_lanes = worker.lanes.used();
  block->used_categories = worker.categories.used();
  // A block can tell 256 categories apart; those beyond share the last one (the store cannot hold more either).
  for (uint32_t i = 0; i < block->used_categories.size(); ++i) {
    const uint32_t category = block->used_categories[i];
    if (category >= category_slot_.size()) category_slot_.resize(category * 2 + 16);
    category_slot_[category] = std::min<uint32_t>(i, UINT8_MAX);
  }
  Order(draft, *block);
  Pack(draft, worker, *block, worker);
  block->marks = draft.marks;
  block->instants = draft.instants;
  block->counters = draft.counters;
  block->flows = draft.flows;
  block->namings = std::move(draft.namings);
  block->tally = draft.tally;
  block->diagnostics = std::move(draft.diagnostics);
  return block;
}

}  // namespace teller::ingest
