#include "ingest/kineto/processes.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <optional>

#include "ingest/common/decimal.hpp"
#include "ingest/common/engine.hpp"
#include "ingest/common/rank.hpp"
#include "ingest/common/text.hpp"
#include "ingest/kineto/diagnostics.hpp"

namespace teller::ingest {

namespace {

using trace::SpanKind;

constexpr int kMaxRank = 1'000'000;  // no job has more; larger numbers are damage

bool StartsWith(std::string_view text, std::string_view front) {
  return text.substr(0, front.size()) == front;
}

std::string TopText(const FileIdentity& identity, const std::string& key) {
  const auto it = identity.top.find(key);
  if (it == identity.top.end() || it->second.size() < 2 || it->second.front() != '"') return {};
  std::string out;
  Unescape(std::string_view(it->second).substr(1, it->second.size() - 2), out);
  return out;
}

struct Distributed {
  std::optional<int> rank;
  std::optional<int> world_size;
};

Distributed ReadDistributed(const FileIdentity& identity, base::Diagnostics& diagnostics) {
  Distributed out;
  const auto it = identity.top.find("distributedInfo");
  if (it == identity.top.end()) return out;
  simdjson::padded_string padded(it->second);
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(padded).get(object)) {
    diagnostics.Report(kineto::kBadRank, identity.file, "distributedInfo is no valid object");
    return out;
  }
  const auto number = [&](std::string_view key) -> std::optional<int> {
    simdjson::dom::element element;
    if (object[key].get(element)) return std::nullopt;
    int64_t value = 0;
    if (element.get(value) || value < 0 || value > kMaxRank) {
      diagnostics.Report(kineto::kBadRank, identity.file, std::string(key));
      return std::nullopt;
    }
    return static_cast<int>(value);
  };
  out.rank = number("rank");
  out.world_size = number("world_size");
  return out;
}

bool IsHostWork(SpanKind kind) {
  return kind == SpanKind::kPython || kind == SpanKind::kOp || kind == SpanKind::kAnnotation ||
         kind == SpanKind::kRuntime || kind == SpanKind::kDriver || kind == SpanKind::kOther;
}

/// What one pid of the file does.
struct PidUse {
  std::string pid;
  uint64_t host_spans = 0;
  uint64_t device_spans = 0;
};

std::vector<PidUse> CountUses(const FileIdentity& identity, const std::vector<std::string>& pids,
                              const trace::Store& store) {
  std::vector<PidUse> uses;
  for (size_t t = identity.first_track; t < identity.last_track; ++t) {
    auto it = std::find_if(uses.begin(), uses.end(), [&](const PidUse& use) { return use.pid == pids[t]; });
    if (it == uses.end()) it = uses.insert(uses.end(), {pids[t]});
    const auto& track = store.tracks[t];
    if (track.is_stream) {
      it->device_spans += track.span_count;
      continue;
    }
    for (uint32_t row = track.first_span; row < track.first_span + track.span_count; ++row) {
      if (IsHostWork(store.kind(row))) ++it->host_spans;
    }
  }
  return uses;
}

/// True when the file says that the pid numbers a device.
bool IsDevicePid(const FileIdentity& identity, const std::string& pid) {
  bool device = false;
  for (const auto& naming : identity.namings) {
    if (naming.what != Naming::What::kProcessLabels || naming.pid != pid) continue;
    if (naming.text == "CPU") return false;
    device = device || StartsWith(naming.text, "GPU");
  }
  return device;
}

/// Pid of the process that was profiled, where no span tells: the first that was named and is no device.
std::string NamedPid(const FileIdentity& identity) {
  for (const auto& naming : identity.namings) {
    if (naming.what == Naming::What::kProcess) return naming.pid;
  }
  return identity.namings.empty() ? std::string() : identity.namings.front().pid;
}

const std::string* FindName(const FileIdentity& identity, Naming::What what, const std::string& pid) {
  for (const auto& naming : identity.namings) {
    if (naming.what == what && naming.pid == pid) return &naming.text;
  }
  return nullptr;
}

std::string EngineOfNames(const FileIdentity& identity) {
  for (const auto& naming : identity.namings) {
    if (auto engine = EngineOfName(naming.text); !engine.empty()) return engine;
  }
  return {};
}

std::string FindEngine(const FileIdentity& identity, const trace::Store& store) {
  if (identity.top.count("vllm_version") != 0) return "vllm";
  if (identity.top.count("sglang_version") != 0) return "sglang";
  if (auto engine = EngineOfNames(identity); !engine.empty()) return engine;
  if (auto engine = EngineOfSpans(store, identity.first_track, identity.last_track); !engine.empty()) return engine;
  const bool kineto = identity.top.count("schemaVersion") != 0 || identity.top.count("distributedInfo") != 0 ||
                      identity.top.count("baseTimeNanoseconds") != 0;
  return kineto ? "torch" : "";
}

void NameTracks(const FileIdentity& identity, const std::vector<std::string>& pids, trace::Store& store) {
  std::map<std::pair<std::string, std::string>, const std::string*> names;
  for (const auto& naming : identity.namings) {
    if (naming.what == Naming::What::kThread) names[{naming.pid, naming.tid}] = &naming.text;
  }
  for (size_t t = identity.first_track; t < identity.last_track; ++t) {
    const auto it = names.find({pids[t], store.tracks[t].tid});
    if (it == names.end()) continue;
    std::string name = *it->second;
    while (!name.empty() && name.back() == ' ') name.pop_back();
    store.tracks[t].name = std::move(name);
  }
}

bool LostIn(trace::FileRow file, const base::Diagnostics& diagnostics) {
  const auto all = diagnostics.All();
  return std::any_of(all.begin(), all.end(), [&](const base::Diagnostic& d) {
    return d.file == file && d.kind->severity >= base::Severity::kDataLoss;
  });
}

}  // namespace

trace::Nanos BaseTime(const std::map<std::string, std::string>& top, trace::Nanos latest, trace::FileRow file,
                      base::Diagnostics& diagnostics) {
  const auto it = top.find("baseTimeNanoseconds");
  if (it == top.end()) return 0;
  const auto value = ParseInteger(it->second);
  if (!value || *value < 0 || *value > kMaxNanos || latest > kMaxNanos - *value) {
    diagnostics.Report(kineto::kBadBase, file, Snippet(it->second));
    return 0;
  }
  return *value;
}

void ResolveProcesses(const FileIdentity& identity, const std::vector<std::string>& pids, trace::Store& store) {
  const auto uses = CountUses(identity, pids, store);
  const auto main = std::max_element(uses.begin(), uses.end(),
                                     [](const PidUse& a, const PidUse& b) { return a.host_spans < b.host_spans; });
  const bool any_host = main != uses.end() && main->host_spans > 0;
  const bool any_device = std::any_of(uses.begin(), uses.end(), [](const PidUse& u) { return u.device_spans > 0; });
  const bool idle = !any_host && !any_device;
  const std::string main_pid = any_host ? main->pid : NamedPid(identity);

  auto& file = store.files[identity.file.value()];
  const Distributed distributed = ReadDistributed(identity, store.diagnostics);
  file.rank = distributed.rank;
  if (!file.rank && !idle) file.rank = RankFromPath(file.path);
  // A file that lost its spans says nothing about what its process did.
  if (idle && file.records_read > 0 && !LostIn(identity.file, store.diagnostics)) file.note = "empty: an idle process";

  trace::Process process;
  process.file = identity.file;
  process.rank = file.rank;
  process.world_size = distributed.world_size;
  process.host = TopText(identity, "host_name");
  process.engine = FindEngine(identity, store);
  std::map<std::string, trace::ProcessRow> rows;
  const auto add = [&](const std::string& pid) {
    process.pid = pid;
    const std::string* name = FindName(identity, Naming::What::kProcess, pid);
    process.name = name != nullptr ? EngineProcessName(*name) : std::string();
    rows[pid] = trace::ProcessRow(static_cast<uint32_t>(store.processes.size()));
    store.processes.push_back(process);
  };
  add(main_pid);
  for (const auto& use : uses) {
    const bool own = use.host_spans > 0 && use.device_spans == 0 && !IsDevicePid(identity, use.pid);
    if (own && use.pid != main_pid) add(use.pid);
  }
  for (size_t t = identity.first_track; t < identity.last_track; ++t) {
    const auto it = rows.find(pids[t]);
    store.tracks[t].process = it != rows.end() ? it->second : rows[main_pid];
  }
  NameTracks(identity, pids, store);
}

}  // namespace teller::ingest
