#include "ingest/nsys/identity.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "ingest/common/engine.hpp"
#include "ingest/common/rank.hpp"
#include "ingest/nsys/diagnostics.hpp"

namespace teller::ingest::nsys {

namespace {

/// What is known of one process of the export.
struct Known {
  trace::ProcessRow row;
  std::set<int32_t> devices;  // that have its work
  std::set<int> ranks;        // that names tell
};

/// Names that say nothing: nsys numbers processes whose name it does not know.
bool IsPlaceholder(std::string_view name) {
  constexpr std::string_view kFront = "process-";
  return name.substr(0, kFront.size()) == kFront &&
         name.find_first_not_of("0123456789", kFront.size()) == std::string_view::npos;
}

std::string_view Base(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

int64_t Number(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// "MPI Rank 3", as MPI's tracing names a process's main thread.
std::optional<int> RankFromThread(std::string_view name) {
  constexpr std::string_view kFront = "MPI Rank ";
  if (name.substr(0, kFront.size()) != kFront) return std::nullopt;
  return RankFromPath("rank" + std::string(name.substr(kFront.size())));
}

class Resolver {
 public:
  Resolver(const Export& source, size_t first_track, size_t last_track, const std::vector<std::string>& pids,
           trace::Store& store)
      : source_(source), first_(first_track), last_(last_track), pids_(pids), store_(store) {}

  void Resolve() {
    for (size_t t = first_; t < last_; ++t) {
      const int64_t key = Number(pids_[t]);
      store_.tracks[t].process = ProcessOf(key);
      if (store_.tracks[t].is_stream) {
        NameStream(t, known_[key]);
      } else {
        NameThread(t, key, known_[key]);
      }
    }
    FindRanks();
    FindEngines();
  }

 private:
  trace::ProcessRow ProcessOf(int64_t key) {
    Known& known = known_[key];
    if (known.row.valid()) return known.row;
    known.row = trace::ProcessRow(static_cast<uint32_t>(store_.processes.size()));
    trace::Process process;
    process.file = source_.parts.file;
    process.pid = std::to_string(ProcessId(key));
    process.host = source_.session.host;
    const auto name = source_.session.processes.find(key);
    if (name != source_.session.processes.end() && !IsPlaceholder(name->second)) {
      process.name = EngineProcessName(Base(name->second));
      process.engine = EngineOfName(name->second);
      if (const auto rank = RankFromPath(Base(name->second))) known.ranks.insert(*rank);
    }
    store_.processes.push_back(std::move(process));
    return known.row;
  }

  /// "context/stream" becomes the stream alone where that is unique in its process.
  void NameStream(size_t t, Known& known) {
    auto& track = store_.tracks[t];
    const std::string stream = track.tid.substr(track.tid.find('/') + 1);
    const bool shared = std::any_of(store_.tracks.begin() + static_cast<std::ptrdiff_t>(first_),
                                    store_.tracks.begin() + static_cast<std::ptrdiff_t>(t), [&](const auto& other) {
                                      return other.is_stream && other.process == track.process && other.tid == stream;
                                    });
    if (!shared) track.tid = stream;
    if (track.stream < 0) track.name = "synchronization";
    const size_t first_args = store_.gpu_args.LowerBound(track.first_span);
    for (size_t i = first_args; i < store_.gpu_args.size(); ++i) {
      const uint32_t row = store_.gpu_args.row(i);
      if (row >= track.first_span + track.span_count) break;
      if (!trace::IsGpuWork(store_.kind(row))) continue;
      const int32_t device = store_.gpu_args.value(i).device;
      if (!known.devices.insert(device).second && !track.name.empty()) continue;
      const auto gpu = source_.session.gpus.find(device);
      const std::string name = gpu == source_.session.gpus.end() ? std::string() : " " + gpu->second;
      if (track.name.empty()) track.name = "GPU " + std::to_string(device) + name;
    }
  }

  void NameThread(size_t t, int64_t key, Known& known) {
    auto& track = store_.tracks[t];
    for (const auto& naming : source_.namings) {
      if (naming.pid == pids_[t] && naming.tid == track.tid) track.name = naming.text;
    }
    const auto it = source_.session.threads.find(key * 0x1000000 + Number(track.tid));
    if (it != source_.session.threads.end() && !it->second.empty()) track.name = it->second;
    if (const auto rank = RankFromThread(track.name)) known.ranks.insert(*rank);
    if (Number(track.tid) == ProcessId(key)) NameByMainThread(track.name, known);
  }

  /// Programs that give themselves a title give it to their main thread.
  void NameByMainThread(std::string_view title, Known& known) {
    auto& process = store_.processes[known.row.value()];
    const std::string engine = EngineOfName(title);
    if (engine.empty()) return;
    process.name = EngineProcessName(title);
    process.engine = engine;
    if (const auto rank = RankFromPath(title)) known.ranks.insert(*rank);
  }

  void FindRanks() {
    std::vector<Known*> working;  // processes with GPU work
    for (auto& [key, known] : known_) {
      if (!known.devices.empty()) working.push_back(&known);
      if (known.ranks.size() == 1) store_.processes[known.row.value()].rank = *known.ranks.begin();
    }
    const auto rank_of = [this](const Known* known) -> std::optional<int>& {
      return store_.processes[known->row.value()].rank;
    };
    auto& file = store_.files[source_.parts.file.value()];
    if (working.size() == 1 || known_.size() == 1) {
      Known& only = working.empty() ? known_.begin()->second : *working.front();
      if (!rank_of(&only)) rank_of(&only) = source_.session.rank;
      if (!rank_of(&only)) rank_of(&only) = RankFromPath(file.path);
      store_.processes[only.row.value()].world_size = source_.session.world_size;
      file.rank = rank_of(&only);
      return;
    }
    InferRanks(working, rank_of);
  }

  template <class RankOf>
  void InferRanks(const std::vector<Known*>& working, const RankOf& rank_of) {
    std::map<int32_t, Known*> by_device;
    for (Known* known : working) {
      if (known->devices.size() != 1 || rank_of(known)) return;
      by_device[*known->devices.begin()] = known;
    }
    if (by_device.size() != working.size() || working.size() < 2) return;
    int rank = 0;
    for (const auto& [device, known] : by_device) rank_of(known) = rank++;
    store_.diagnostics.Report(kRankInferred, source_.parts.file, std::to_string(rank) + " processes");
  }

  void FindEngines() {
    const std::string engine = EngineOfSpans(store_, first_, last_);
    for (const auto& [key, known] : known_) {
      auto& process = store_.processes[known.row.value()];
      if (process.engine.empty()) process.engine = engine;
    }
  }

  const Export& source_;
  const size_t first_;
  const size_t last_;
  const std::vector<std::string>& pids_;
  trace::Store& store_;
  std::map<int64_t, Known> known_;
};

}  // namespace

void ResolveProcesses(const Export& source, size_t first_track, size_t last_track, const std::vector<std::string>& pids,
                      trace::Store& store) {
  Resolver(source, first_track, last_track, pids, store).Resolve();
}

}  // namespace teller::ingest::nsys
