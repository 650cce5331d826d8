#include "align/align.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>

namespace teller::align {

namespace {

using trace::LogRecord;
using trace::Nanos;
using trace::ProcessRow;
using trace::Step;

constexpr size_t kMostNear = 64;  // steps that a record's time may leave open

struct Owner {
  ProcessRow process;
  double confidence = 0;
  const char* reason = "";
};

class Aligner {
 public:
  Aligner(trace::Store& store, trace::Trees& trees) : store_(store), trees_(trees) {
    for (uint32_t i = 0; i < trees.steps.size(); ++i) steps_of_[trees.steps[i].process.value()].push_back(i);
    for (uint32_t p = 0; p < store.processes.size(); ++p) {
      const auto& process = store.processes[p];
      if (process.service) continue;  // the process of a trace may stand here a second time, by its request spans
      traced_.push_back(ProcessRow(p));
      int64_t pid = -1;
      const auto [end, error] = std::from_chars(process.pid.data(), process.pid.data() + process.pid.size(), pid);
      if (error == std::errc() && end == process.pid.data() + process.pid.size()) Unique(by_pid_, pid, p);
      if (process.rank.has_value()) Unique(by_rank_, *process.rank, p);
      if (!process.name.empty()) Unique(by_name_, process.name, p);
    }
  }

  void Run() {
    for (LogRecord& record : store_.logs) {
      const Owner owner = OwnerOf(record);
      record.trace_process = owner.process;
      record.align_confidence = owner.confidence;
      record.align_reason = owner.reason;
      ShiftToReference(record);
      if (record.at == trace::kNoTime) continue;
      if (owner.process.valid()) {
        AlignStep(record, owner.process);
      } else if (steps_of_.size() == 1) {
        // Another process of the same service: its lines belong to what the only traced worker did at the time.
        AlignStep(record, ProcessRow(steps_of_.begin()->first));
        record.align_confidence *= 0.5;
      }
      trees_.logs_in_steps += record.step.valid();
    }
    ShiftRequests();
    RelateClocks();
  }

 private:
  /// A corrected process's own stamps are of the clock that was corrected: they move with its spans. Arrival times are
  /// the collecting host's, and what is anchored to them too; they stay. Lent times go with the record that lent them.
  void ShiftToReference(LogRecord& record) {
    const bool same_file = lender_file_ == record.file;
    lender_file_ = record.file;
    if (record.basis != trace::TimeBasis::kNeighbour || !same_file) {
      const ProcessRow process = record.basis == trace::TimeBasis::kStamp ? record.trace_process : ProcessRow();
      const bool corrected =
          process.valid() && process.value() < trees_.clocks.size() && trees_.clocks[process.value()].corrected;
      lender_ = corrected ? process : ProcessRow();
    }
    if (!lender_.valid()) return;
    record.at = trees_.clocks[lender_.value()].ToReference(record.at);
    if (record.basis == trace::TimeBasis::kStamp) moved_.push_back(static_cast<uint32_t>(&record - store_.logs.data()));
  }

  /// What a line states of a request moves with the line. Lines with a lent time state none.
  void ShiftRequests() {
    if (moved_.empty()) return;
    for (trace::RequestRecord& request : store_.request_records) {
      uint32_t line = 0;
      const std::string& ref = request.ref;  // "line:412"
      const size_t colon = ref.find(':');
      if (request.source == trace::RequestSource::kSpan || colon == std::string::npos) continue;
      std::from_chars(ref.data() + colon + 1, ref.data() + ref.size(), line);
      const auto after = std::upper_bound(moved_.begin(), moved_.end(), std::pair(request.file, line),
                                          [&](const auto& want, uint32_t row) {
                                            return want < std::pair(store_.logs[row].file, store_.logs[row].line);
                                          });
      if (after == moved_.begin()) continue;
      const LogRecord& record = store_.logs[*(after - 1)];
      if (record.file != request.file || line >= record.line + std::max<uint32_t>(1, record.lines)) continue;
      const trace::ProcessClock& clock = trees_.clocks[record.trace_process.value()];
      for (const auto time : trace::kRequestTimes) request.*time = clock.ToReference(request.*time);
      request.named = clock.ToReference(request.named);
    }
  }

  /// Which basis the records in traced time have, and how far they can be off.
  void RelateClocks() {
    if (trees_.steps.empty() || store_.logs.empty()) return;
    Nanos begin = trees_.steps.front().begin;
    Nanos end = trees_.steps.front().end;
    for (const Step& step : trees_.steps) {
      begin = std::min(begin, step.begin);
      end = std::max(end, step.end);
    }
    std::map<trace::TimeBasis, std::pair<size_t, Nanos>> bases;  // basis -> (records, largest error)
    for (const LogRecord& record : store_.logs) {
      if (record.at == trace::kNoTime || record.at + record.at_error < begin || record.at - record.at_error > end)
        continue;
      auto& [count, error] = bases[record.basis];
      ++count;
      error = std::max(error, record.at_error);
    }
    size_t most = 0;
    for (const auto& [basis, what] : bases) {
      if (basis == trace::TimeBasis::kNeighbour || basis == trace::TimeBasis::kNone || what.first <= most) continue;
      most = what.first;
      trees_.log_clock_method = BasisText(basis);
      trees_.log_clock_error = what.second;
    }
    if (most == 0) trees_.log_clock_method = "no record with a time of its own falls into traced time";
  }

  static const char* BasisText(trace::TimeBasis basis) {
    switch (basis) {
      case trace::TimeBasis::kArrival: return "arrival times of the lines";
      case trace::TimeBasis::kStamp: return "the lines' own stamps";
      case trace::TimeBasis::kRelative: return "times since start, anchored";
      default: return "none";
    }
  }

  template <class Key>
  static void Unique(std::map<Key, ProcessRow>& map, const Key& key, uint32_t row) {
    const auto [it, fresh] = map.try_emplace(key, ProcessRow(row));
    if (!fresh) it->second = ProcessRow();  // named twice: proves nothing
  }

  template <class Key>
  static ProcessRow Find(const std::map<Key, ProcessRow>& map, const Key& key) {
    const auto it = map.find(key);
    return it == map.end() ? ProcessRow() : it->second;
  }

  Owner OwnerOf(const LogRecord& record) const {
    if (record.pid.has_value()) {
      if (const ProcessRow p = Find(by_pid_, *record.pid); p.valid()) return {p, 1.0, "same process id"};
    }
    const auto rank = record.rank.has_value() ? record.rank : store_.files[record.file.value()].rank;
    if (rank.has_value()) {
      if (const ProcessRow p = Find(by_rank_, *rank); p.valid()) return {p, 0.95, "same rank"};
    }
    if (!record.process.empty()) {
      if (const ProcessRow p = Find(by_name_, record.process); p.valid()) return {p, 0.9, "same process name"};
      return {};
    }
    if (traced_.size() == 1) return {traced_.front(), 0.7, "the only traced process"};
    return {};
  }

  /// Tokens that a statistics line tells of one step, or nothing.
  static std::optional<double> StepTokens(const LogRecord& record) {
    double sum = 0;
    bool any = false;
    for (const auto& [key, value] : record.statistics) {
      if (key == "context_tokens" || key == "generation_tokens" || key == "new_token" || key == "new_tokens") {
        sum += value;
        any = true;
      }
    }
    return any ? std::optional(sum) : std::nullopt;
  }

  void AlignStep(LogRecord& record, ProcessRow process) const {
    const auto found = steps_of_.find(process.value());
    if (found == steps_of_.end()) return;
    const auto& list = found->second;
    const Nanos from = record.at - record.at_error;
    const Nanos to = record.at + record.at_error;
    auto it =
        std::lower_bound(list.begin(), list.end(), from, [&](uint32_t s, Nanos t) { return trees_.steps[s].end < t; });
    std::vector<uint32_t> near;
    for (; it != list.end(); ++it) {
      const Step& step = trees_.steps[*it];
      const Nanos begin = step.begin - std::max<Nanos>(0, step.gap_before);
      if (begin > to || near.size() > kMostNear) break;
      near.push_back(*it);
    }
    if (near.size() > kMostNear) return;  // a time that open ties the record to no step
    if (near.empty()) return;
    uint32_t chosen = near.front();
    double share = 1.0 / static_cast<double>(near.size());
    if (const auto tokens = StepTokens(record); tokens.has_value() && near.size() > 1) {
      std::vector<uint32_t> fitting;
      for (const uint32_t s : near) {
        if (static_cast<double>(trees_.steps[s].new_tokens) == *tokens) fitting.push_back(s);
      }
      if (!fitting.empty()) {
        near = std::move(fitting);
        share = 1.0 / static_cast<double>(near.size());
      }
    }
    Nanos best = INT64_MAX;
    for (const uint32_t s : near) {
      const Step& step = trees_.steps[s];
      const Nanos away = record.at < step.begin ? step.begin - record.at : std::max<Nanos>(0, record.at - step.end);
      if (away < best) {
        best = away;
        chosen = s;
      }
    }
    record.step = trace::StepRow(chosen);
    record.align_confidence =
        std::max(0.05, record.align_confidence > 0 ? record.align_confidence * share : 0.8 * share);
    record.align_reason += record.align_reason.empty() ? "time inside the step" : ", time inside the step";
    if (near.size() > 1) record.align_reason += " or one of its " + std::to_string(near.size() - 1) + " neighbours";
  }

  trace::Store& store_;
  trace::Trees& trees_;
  std::map<uint32_t, std::vector<uint32_t>> steps_of_;
  std::vector<ProcessRow> traced_;
  trace::FileRow lender_file_;   // of the record before
  ProcessRow lender_;            // whose clock the last stamp was of, where that clock was corrected
  std::vector<uint32_t> moved_;  // records whose own stamp was shifted; order: by row, which is by file, then line
  std::map<int64_t, ProcessRow> by_pid_;
  std::map<int, ProcessRow> by_rank_;
  std::map<std::string, ProcessRow> by_name_;
};

}  // namespace

void AlignLogs(trace::Store& store, trace::Trees& trees) {
  Aligner(store, trees).Run();
}

}  // namespace teller::align
