#include "ingest/kineto/kineto.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "base/parallel.hpp"
#include "ingest/common/assemble.hpp"
#include "ingest/common/decimal.hpp"
#include "ingest/common/text.hpp"
#include "ingest/kineto/diagnostics.hpp"
#include "ingest/kineto/event_parser.hpp"
#include "ingest/kineto/marks.hpp"
#include "ingest/kineto/processes.hpp"
#include "ingest/kineto/window_reader.hpp"

namespace teller::ingest {

namespace {

/// One file while it is read. The reader is used under the mutex by whichever worker comes by.
struct OpenTrace {
  KinetoInput input;
  std::mutex mutex;
  bool opened = false;
  std::atomic<bool> finished = false;
  std::unique_ptr<WindowReader> reader;
  std::optional<base::Error> error;
  FileParts parts;
  std::mutex parts_mutex;
};

enum class Take : uint8_t { kWindow, kBusy, kFinished };

/// Shares out windows of all files. Windows of a file are read in order, by one worker at a time; a worker that finds a
/// file busy goes on to the next one, so that as many files are open as there are workers at most.
class TraceQueue {
 public:
  TraceQueue(const std::vector<KinetoInput>& inputs, const RunOptions& options) : options_(options) {
    for (const auto& input : inputs) {
      traces_.push_back(std::make_unique<OpenTrace>());
      traces_.back()->input = input;
      traces_.back()->parts.file = input.file;
      total_ += base::BytesOnDisk(input.path);
    }
  }

  /// The next window of any file, or null when all files are finished.
  OpenTrace* Next(Window& window) {
    while (true) {
      if (options_.progress != nullptr && options_.progress->cancelled()) return nullptr;
      const size_t first = FirstUnfinished();
      if (first == traces_.size()) return nullptr;
      for (size_t i = first; i < traces_.size(); ++i) {
        std::unique_lock lock(traces_[i]->mutex, std::try_to_lock);
        if (lock.owns_lock() && ReadWindow(*traces_[i], window)) return traces_[i].get();
      }
      // All are being read by others: wait for the first of them.
      std::unique_lock lock(traces_[first]->mutex);
      if (ReadWindow(*traces_[first], window)) return traces_[first].get();
    }
  }

  void Put(OpenTrace& trace, uint32_t index, std::unique_ptr<Block> block) {
    const std::lock_guard lock(trace.parts_mutex);
    auto& blocks = trace.parts.blocks;
    if (blocks.size() <= index) blocks.resize(index + 1);
    blocks[index] = std::move(block);
  }

  std::vector<std::unique_ptr<OpenTrace>>& traces() { return traces_; }

 private:
  size_t FirstUnfinished() {
    size_t i = first_unfinished_.load();
    while (i < traces_.size() && traces_[i]->finished.load()) ++i;
    first_unfinished_.store(i);
    return i;
  }

  bool ReadWindow(OpenTrace& trace, Window& window) {
    if (trace.finished) return false;
    if (!trace.opened) {
      trace.opened = true;
      auto source = base::OpenFile(trace.input.path);
      if (!source) return Finish(trace, source.error());
      trace.reader = std::make_unique<WindowReader>(std::move(*source), options_.limits);
    }
    const uint64_t before = trace.reader->consumed();
    auto got = trace.reader->Next(window);
    Advance(trace.reader->consumed() - before);
    if (!got) return Finish(trace, got.error());
    if (!*got) return Finish(trace, std::nullopt);
    return true;
  }

  bool Finish(OpenTrace& trace, std::optional<base::Error> error) {
    trace.error = std::move(error);
    trace.finished = true;
    return false;
  }

  void Advance(uint64_t bytes) {
    const uint64_t done = consumed_.fetch_add(bytes) + bytes;
    if (options_.progress != nullptr) options_.progress->Update("read", done, total_);
  }

  const RunOptions& options_;
  std::vector<std::unique_ptr<OpenTrace>> traces_;
  std::atomic<size_t> first_unfinished_ = 0;
  std::atomic<uint64_t> consumed_ = 0;
  uint64_t total_ = 0;  // bytes on disk
};

void ReportOutcome(OpenTrace& trace, trace::Store& store) {
  auto& file = store.files[trace.input.file.value()];
  auto& diagnostics = store.diagnostics;
  if (trace.error) {
    diagnostics.Report(kineto::kUnreadableTrace, trace.input.file, trace.error->message);
    file.note = trace.error->message;
  }
  if (trace.reader == nullptr) return;
  const auto& outcome = trace.reader->outcome();
  file.bytes = outcome.bytes;
  const auto row = trace.input.file;
  const auto at = [](uint64_t byte) { return "byte " + std::to_string(byte); };
  if (!outcome.damage.empty()) diagnostics.Report(kineto::kDamagedGzip, row, outcome.damage);
  if (outcome.oversize > 0) {
    diagnostics.Report(kineto::kOversize, row, at(outcome.oversize_at), outcome.oversize);
    file.records_read += outcome.oversize;
    file.dropped += outcome.oversize;
  }
  if (outcome.cut_event) {
    diagnostics.Report(kineto::kTruncated, row, at(outcome.cut_at));
    ++file.records_read;
    ++file.dropped;
  }
  if (outcome.no_events) {
    diagnostics.Report(kineto::kNoEvents, row, {});
    file.note = "no events";
  }
  if (outcome.broken_top) diagnostics.Report(kineto::kBrokenTop, row, {});
  if (outcome.trailing) diagnostics.Report(kineto::kTrailing, row, {});
  if (outcome.unclosed && !outcome.cut_event) {
    // Arrays may stay open by the format's own rule; an object that does lacks what stood behind its events.
    const bool array = trace.reader->top().bare_array();
    diagnostics.Report(array ? kineto::kUnclosed : kineto::kTruncated, row, at(outcome.bytes));
  }
}

/// Makes a last block of the file's B and E events.
void AddMarks(FileParts& parts, std::vector<std::unique_ptr<Worker>>& workers) {
  size_t count = 0;
  trace::Nanos end = 0;
  for (const auto& block : parts.blocks) {
    count += block->marks.size();
    end = std::max(end, block->latest);
    for (const auto& mark : block->marks) end = std::max(end, mark.begin);
  }
  if (count == 0) return;
  auto own = std::make_unique<Worker>();
  own->strings.BeginBlock();
  own->lanes.BeginBlock();
  own->categories.BeginBlock();
  std::vector<DraftSpan> marks;
  marks.reserve(count);
  for (auto& block : parts.blocks) {
    const Worker& from = *workers[block->worker];
    for (DraftSpan mark : block->marks) {
      mark.name = own->strings.Intern(from.strings.Text(mark.name));
      mark.lane = own->lanes.Intern(from.lanes.Text(mark.lane));
      const trace::SpanKind kind = from.kinds[mark.category];
      mark.category = own->categories.Intern(from.categories.Text(mark.category));
      if (own->kinds.size() <= mark.category) own->kinds.resize(mark.category + 1);
      own->kinds[mark.category] = kind;
      marks.push_back(mark);
    }
    block->marks = {};
  }
  Draft draft;
  PairMarks(marks, end, parts.file, draft.spans, draft.tally, draft.diagnostics);
  BlockBuilder builder;
  parts.blocks.push_back(builder.Build(draft, *own, static_cast<uint32_t>(workers.size())));
  workers.push_back(std::move(own));
}

/// Gives the counters from `first` on their series: one a process and name, in order of their first sample.
void NameCounters(size_t first, trace::Store& store) {
  std::map<std::pair<uint32_t, uint32_t>, trace::CounterRow> rows;
  for (size_t i = first; i < store.counters.size(); ++i) {
    trace::CounterSample& sample = store.counters[i];
    const trace::ProcessRow process = store.tracks[sample.scrape].process;
    const trace::StringId name(sample.series.value());
    const trace::CounterRow next(static_cast<uint32_t>(store.counter_series.size()));
    const auto [row, is_new] = rows.emplace(std::make_pair(process.value(), name.value()), next);
    if (is_new) {
      trace::CounterSeries series;
      series.file = store.processes[process.value()].file;
      series.process = process;
      series.name = store.text(name);
      store.counter_series.push_back(std::move(series));
    }
    sample.series = row->second;
    sample.scrape = 0;
  }
}

}  // namespace

base::Status ReadKineto(const std::vector<KinetoInput>& inputs, trace::Store& store, const RunOptions& options) {
  if (inputs.empty()) return {};
  const unsigned threads = base::ThreadCount(options.threads);
  TraceQueue queue(inputs, options);
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned i = 0; i < threads; ++i) workers.push_back(std::make_unique<Worker>());
  base::RunWorkers(threads, [&](unsigned index) {
    EventParser parser(*workers[index], index, options.limits);
    Window window;
    while (OpenTrace* trace = queue.Next(window)) {
      queue.Put(*trace, window.index, parser.Parse(window, trace->input.file));
    }
  });
  if (options.progress != nullptr && options.progress->cancelled()) {
    return base::Error{base::Code::kCancelled, "stopped while reading traces"};
  }
  std::vector<FileParts> files;
  for (auto& trace : queue.traces()) {
    ReportOutcome(*trace, store);
    AddMarks(trace->parts, workers);
    if (trace->reader != nullptr) {
      trace::Nanos latest = 0;
      for (const auto& block : trace->parts.blocks) latest = std::max(latest, block->latest);
      trace->parts.base_time = BaseTime(trace->reader->top().values(), latest, trace->input.file, store.diagnostics);
    }
    CheckTotal(trace->parts, kMaxNanos / static_cast<trace::Nanos>(inputs.size()), store.diagnostics);
    files.push_back(std::move(trace->parts));
  }
  std::vector<FileIdentity> identities;
  for (size_t i = 0; i < files.size(); ++i) {
    FileIdentity identity;
    identity.file = files[i].file;
    if (queue.traces()[i]->reader != nullptr) identity.top = queue.traces()[i]->reader->top().values();
    for (auto& block : files[i].blocks) {
      std::move(block->namings.begin(), block->namings.end(), std::back_inserter(identity.namings));
    }
    identities.push_back(std::move(identity));
  }
  const size_t first_counter = store.counters.size();
  const auto assembled = Assemble(files, workers, store, threads, options.limits.max_spans);
  for (size_t i = 0; i < files.size(); ++i) {
    identities[i].first_track = assembled.first_tracks[i];
    identities[i].last_track = assembled.first_tracks[i + 1];
    ResolveProcesses(identities[i], assembled.pids, store);
  }
  NameCounters(first_counter, store);
  return {};
}

}  // namespace teller::ingest
