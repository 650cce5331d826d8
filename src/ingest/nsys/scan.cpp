#include "ingest/nsys/scan.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/parallel.hpp"
#include "ingest/common/decimal.hpp"
#include "ingest/nsys/database.hpp"
#include "ingest/nsys/diagnostics.hpp"
#include "ingest/nsys/row_drafter.hpp"
#include "ingest/nsys/schema.hpp"

namespace teller::ingest::nsys {

namespace {

// Rows of a chunk: its draft has about 1 MB and stays in a core's second-level cache.
constexpr uint64_t kChunkRows = 16384;
constexpr uint64_t kMinRowBytes = 4;  // no row of an SQLite table takes less room

/// Some rows of one table.
struct Chunk {
  const EventTable* event = nullptr;
  const Table* table = nullptr;
  RowRange range;
  uint64_t max_rows = 0;
};

class ExportReader {
 public:
  ExportReader(const std::string& path, trace::FileRow file, std::vector<std::unique_ptr<Worker>>& workers,
               trace::Store& store, const RunOptions& options)
      : path_(path), file_(file), workers_(workers), store_(store), options_(options) {}

  base::Result<Export> Read() {
    auto database = Database::Open(path_, options_.progress);
    if (!database) return database.error();
    std::error_code error;
    bytes_ = std::filesystem::file_size(path_, error);
    if (error) return base::Error{base::Code::kUnreadable, error.message(), path_};
    if (!database->damage().empty()) store_.diagnostics.Report(kDamaged, file_, database->damage());
    const uint64_t max_rows = bytes_ / kMinRowBytes + 1;
    if (const auto status = names_.Read(*database, max_rows); !status) {
      store_.diagnostics.Report(kDamaged, file_, status.error().message);
    }
    out_.session = ReadSession(*database, file_, max_rows, names_, store_.diagnostics);
    PlanChunks(*database, max_rows);
    ReadChunks(*database);
    if (options_.progress != nullptr && options_.progress->cancelled()) {
      return base::Error{base::Code::kCancelled, "stopped while reading traces"};
    }
    CountFrames();
    FinishParts();
    return std::move(out_);
  }

 private:
  void PlanChunks(const Database& database, uint64_t max_rows) {
    bool gpu_work = false;
    for (const auto& event : EventTables()) {
      const Table* table = database.Find(event.name);
      if (table == nullptr || database.IsEmpty(*table)) continue;
      if (!HasNeeded(*table, event.shape)) {
        store_.diagnostics.Report(kLayout, file_, std::string(event.name));
        continue;
      }
      gpu_work = gpu_work || trace::IsGpuWork(event.kind);
      const auto range = database.Range(*table);
      if (range) {
        Split({&event, table, *range, max_rows});
      } else {
        store_.diagnostics.Report(kDamaged, file_, range.error().message);
        chunks_.push_back({&event, table, {}, max_rows});  // up to what is missing
      }
    }
    if (!gpu_work) store_.diagnostics.Report(kNoGpuWork, file_, {});
    ReportUnused(database);
  }

  /// Cuts the row numbers of a table into equal parts.
  void Split(const Chunk& whole) {
    if (!whole.table->row_ids) return chunks_.push_back(whole);
    const auto distance = static_cast<uint64_t>(whole.range.last) - static_cast<uint64_t>(whole.range.first);
    const uint64_t most = bytes_ / kChunkRows + 1;  // numbers may have gaps of any size
    const uint64_t parts = std::min(distance / kChunkRows + 1, most);
    const uint64_t step = distance / parts + 1;
    auto first = static_cast<uint64_t>(whole.range.first);
    for (uint64_t i = 0; i < parts; ++i) {
      Chunk chunk = whole;
      chunk.range.first = static_cast<int64_t>(first);
      const uint64_t left = static_cast<uint64_t>(whole.range.last) - first;
      chunk.range.last = static_cast<int64_t>(first + std::min(step - 1, left));
      chunks_.push_back(chunk);
      if (left < step) break;
      first += step;
    }
  }

  /// Tables of events that nothing here reads.
  void ReportUnused(const Database& database) {
    for (const auto& [name, table] : database.tables()) {
      const auto events = EventTables();
      const bool known =
          std::any_of(events.begin(), events.end(), [&name = name](const auto& event) { return event.name == name; });
      if (known || !table.Has("start") || database.IsEmpty(table)) continue;
      store_.diagnostics.Report(kNotUsed, file_, name);
    }
  }

  void ReadChunks(const Database& database) {
    blocks_.resize(chunks_.size());
    std::atomic<size_t> next = 0;
    std::atomic<size_t> done = 0;
    const auto threads =
        static_cast<unsigned>(std::clamp<size_t>(chunks_.size(), 1, base::ThreadCount(options_.threads)));
    base::RunWorkers(threads, [&](unsigned index) {
      // Connections are not shared between threads; the first one is here already.
      std::optional<Database> own;
      if (index > 0) {
        auto opened = Database::Open(path_, options_.progress);
        if (!opened) return;  // the other workers do it
        own = std::move(*opened);
      }
      const Database& from = own ? *own : database;
      RowDrafter drafter(*workers_[index], names_, out_.session, file_);
      BlockBuilder builder;
      for (size_t i = next++; i < chunks_.size(); i = next++) {
        if (options_.progress != nullptr && options_.progress->cancelled()) return;
        blocks_[i] = ReadChunk(from, chunks_[i], drafter, builder, index);
        if (options_.progress != nullptr) options_.progress->Update("read", bytes_ * ++done / chunks_.size(), bytes_);
      }
    });
  }

  std::unique_ptr<Block> ReadChunk(const Database& database, const Chunk& chunk, RowDrafter& drafter,
                                   BlockBuilder& builder, unsigned worker) {
    drafter.Begin(*chunk.event);
    const auto status = database.Scan(*chunk.table, ColumnsOf(chunk.event->shape), chunk.range, chunk.max_rows,
                                      [&drafter](const Row& row, int64_t number) {
                                        drafter.Add(row, number);
                                        return true;
                                      });
    if (!status && status.error().code != base::Code::kCancelled) {
      drafter.draft().diagnostics.Report(kDamaged, file_, status.error().message);
    }
    return builder.Build(drafter.draft(), *workers_[worker], worker);
  }

  void CountFrames() {
    const Session& session = out_.session;
    auto& file = store_.files[file_.value()];
    file.records_read += session.frames;
    file.repaired_away += session.leaves.size();
    const uint64_t above = session.frames - session.leaves.size();
    file.dropped += above;
    if (above > 0) store_.diagnostics.Report(kFrames, file_, {}, above);
  }

  void FinishParts() {
    auto& parts = out_.parts;
    parts.file = file_;
    parts.base_time = out_.session.base;
    parts.blocks = std::move(blocks_);
    for (auto& block : parts.blocks) {
      std::move(block->namings.begin(), block->namings.end(), std::back_inserter(out_.namings));
    }
    CloseOpenRanges();
    store_.files[file_.value()].bytes = bytes_;
  }

  /// Makes a last block of the ranges that were never closed: they last up to the end of the recording.
  void CloseOpenRanges() {
    auto& blocks = out_.parts.blocks;
    trace::Nanos end = 0;
    size_t count = 0;
    for (const auto& block : blocks) {
      end = std::max(end, block->latest);
      count += block->marks.size();
      for (const auto& mark : block->marks) end = std::max(end, mark.begin);
    }
    if (count == 0) return;
    auto own = std::make_unique<Worker>();
    own->strings.BeginBlock();
    own->lanes.BeginBlock();
    own->categories.BeginBlock();
    Draft draft;
    for (auto& block : blocks) {
      const Worker& from = *workers_[block->worker];
      for (DraftSpan span : block->marks) {
        span.name = own->strings.Intern(from.strings.Text(span.name));
        span.lane = own->lanes.Intern(from.lanes.Text(span.lane));
        const trace::SpanKind kind = from.kinds[span.category];
        span.category = own->categories.Intern(from.categories.Text(span.category));
        if (own->kinds.size() <= span.category) own->kinds.resize(span.category + 1);
        own->kinds[span.category] = kind;
        span.duration = std::min(end - span.begin, kMaxDuration);
        span.op = kNoArgs;
        draft.spans.push_back(span);
      }
      block->marks = {};
    }
    BlockBuilder builder;
    blocks.push_back(builder.Build(draft, *own, static_cast<uint32_t>(workers_.size())));
    workers_.push_back(std::move(own));
  }

  const std::string& path_;
  const trace::FileRow file_;
  std::vector<std::unique_ptr<Worker>>& workers_;
  trace::Store& store_;
  const RunOptions& options_;
  uint64_t bytes_ = 0;
  Names names_;
  std::vector<Chunk> chunks_;
  std::vector<std::unique_ptr<Block>> blocks_;
  Export out_;
};

}  // namespace

base::Result<Export> ReadExport(const std::string& path, trace::FileRow file,
                                std::vector<std::unique_ptr<Worker>>& workers, trace::Store& store,
                                const RunOptions& options) {
  return ExportReader(path, file, workers, store, options).Read();
}

}  // namespace teller::ingest::nsys
