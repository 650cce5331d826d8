#include "ingest/nsys/session.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "ingest/common/decimal.hpp"
#include "ingest/common/text.hpp"
#include "ingest/nsys/diagnostics.hpp"
#include "ingest/nsys/names.hpp"
#include "ingest/nsys/schema.hpp"

namespace teller::ingest::nsys {

namespace {

// Times from here on (2001) are epoch times already (nsys export --ts-normalize): no session lasts 30 years.
constexpr trace::Nanos kEpochTimes = 1'000'000'000 * base::kSecond;
constexpr int64_t kNewestMajor = 3;
constexpr int64_t kNewestMinor = 25;
constexpr int kMaxRank = 1'000'000;  // no job has more; larger numbers are damage
constexpr int64_t kWarning = 2;      // DIAGNOSTIC_EVENT.severity
constexpr int64_t kError = 3;

/// Variables in which launchers tell a process its rank, and the number of ranks; the first that is set counts.
constexpr std::array<std::string_view, 6> kRankVariables = {"RANK",     "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                                            "PMI_RANK", "MV2_COMM_WORLD_RANK",  "SLURM_PROCID"};
constexpr std::array<std::string_view, 5> kSizeVariables = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                                            "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS"};

std::optional<int> SmallNumber(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > kMaxRank) return std::nullopt;
  return value;
}

class SessionReader {
 public:
  SessionReader(const Database& database, trace::FileRow file, uint64_t max_rows, const Names& names,
                base::Diagnostics& diagnostics)
      : database_(database), file_(file), max_rows_(max_rows), names_(names), diagnostics_(diagnostics) {}

  Session Read() {
    ReadVersion();
    ReadStart();
    ReadEnvironment();
    ReadNames();
    ReadLeaves();
    ReadWarnings();
    FindOnlyProcess();
    return std::move(session_);
  }

 private:
  template <class Each>
  void ForEach(std::string_view name, const Columns& columns, const Each& each) {
    const Table* table = database_.Find(name);
    if (table == nullptr) return;
    const auto status = database_.Scan(*table, columns, {}, max_rows_, [&each](const Row& row, int64_t) {
      each(row);
      return true;
    });
    if (!status && status.error().code != base::Code::kCancelled) {
      diagnostics_.Report(kDamaged, file_, status.error().message);
    }
  }

  void ReadVersion() {
    int64_t major = 0;
    int64_t minor = 0;
    for (const auto* table : {"META_DATA_EXPORT", "EXPORT_META_DATA"}) {
      ForEach(table, {{"name"}, {"value"}}, [&](const Row& row) {
        const std::string_view name = row.Text(0);
        if (name == "EXPORT_SCHEMA_VERSION_MAJOR") major = row.Integer(1);
        if (name == "EXPORT_SCHEMA_VERSION_MINOR") minor = row.Integer(1);
      });
    }
    if (std::pair(major, minor) > std::pair(kNewestMajor, kNewestMinor)) {
      diagnostics_.Report(kNewSchema, file_, std::to_string(major) + "." + std::to_string(minor));
    }
  }

  /// True when the first rows of the event tables bear epoch times.
  bool HasEpochTimes() {
    trace::Nanos earliest = INT64_MAX;
    for (const auto& event : EventTables()) {
      const Table* table = database_.Find(event.name);
      if (table == nullptr || !table->Has("start")) continue;
      const auto status = database_.Scan(*table, {{"start"}}, {}, 1, [&](const Row& row, int64_t) {
        if (row.Told(0, row.Integer(0))) earliest = std::min<trace::Nanos>(earliest, row.Integer(0));
        return false;
      });
      if (!status) continue;  // reported when the table is read
    }
    return earliest != INT64_MAX && earliest >= kEpochTimes;
  }

  void ReadStart() {
    if (HasEpochTimes()) return;
    std::optional<int64_t> start;
    ForEach("TARGET_INFO_SESSION_START_TIME", {{"utcEpochNs"}}, [&start](const Row& row) {
      if (!start && row.Told(0, row.Integer(0))) start = row.Integer(0);
    });
    if (start && *start >= kEpochTimes && *start <= kMaxNanos) {
      session_.base = *start;
    } else {
      diagnostics_.Report(kNoEpoch, file_, start ? std::to_string(*start) : std::string());
    }
  }

  void ReadEnvironment() {
    ForEach("TARGET_INFO_SYSTEM_ENV", {{"name"}, {"value"}}, [this](const Row& row) {
      if (row.Text(0) == "Hostname") session_.host = ReplaceInvalid(row.Text(1));
    });
    size_t rank_from = kRankVariables.size();
    size_t size_from = kSizeVariables.size();
    const auto take = [](std::string_view variable, const auto& known, size_t& from, std::optional<int>& into) {
      const size_t equals = variable.find('=');
      if (equals == std::string_view::npos) return;
      const auto* it = std::find(known.begin(), known.end(), variable.substr(0, equals));
      const auto place = static_cast<size_t>(it - known.begin());
      const auto value = SmallNumber(variable.substr(equals + 1));
      if (place >= from || !value) return;
      from = place;
      into = value;
    };
    ForEach("META_DATA_CAPTURE", {{"name"}, {"value"}}, [&](const Row& row) {
      static constexpr std::string_view kVariable = "ENVIRONMENT_VARIABLE";
      const std::string_view name = row.Text(0);
      if (name.size() < kVariable.size() || name.substr(name.size() - kVariable.size()) != kVariable) return;
      take(row.Text(1), kRankVariables, rank_from, session_.rank);
      take(row.Text(1), kSizeVariables, size_from, session_.world_size);
    });
    if (session_.rank && session_.world_size && *session_.rank >= *session_.world_size) session_.world_size.reset();
  }

  std::string NameOf(int64_t id) const {
    const auto row = names_.Find(id);
    return row ? ReplaceInvalid(names_.Text(*row)) : std::string();
  }

  void ReadNames() {
    ForEach("PROCESSES", {{"globalPid"}, {"name"}}, [this](const Row& row) {
      if (row.Told(0, row.Integer(0))) session_.processes[ProcessKey(row.Integer(0))] = ReplaceInvalid(row.Text(1));
    });
    std::map<int64_t, int64_t> priorities;  // of the names taken
    ForEach("ThreadNames", {{"globalTid"}, {"nameId"}, {"priority"}}, [&](const Row& row) {
      if (!row.Told(0, row.Integer(0))) return;
      const auto [it, is_new] = priorities.emplace(row.Integer(0), row.Integer(2));
      if (!is_new && row.Integer(2) < it->second) return;
      it->second = row.Integer(2);
      session_.threads[row.Integer(0)] = NameOf(row.Integer(1));
    });
    ForEach("TARGET_INFO_GPU", {{"id"}, {"name"}}, [this](const Row& row) {
      if (row.Told(0, row.Integer(0))) session_.gpus[row.Integer(0)] = ReplaceInvalid(row.Text(1));
    });
  }

  void ReadLeaves() {
    ForEach("SAMPLING_CALLCHAINS", {{"id"}, {"symbol"}, {"stackDepth"}}, [this](const Row& row) {
      ++session_.frames;
      if (row.Integer(2) == 0) session_.leaves.emplace_back(row.Integer(0), row.Integer(1));
    });
    std::sort(session_.leaves.begin(), session_.leaves.end());
  }

  void ReadWarnings() {
    ForEach("DIAGNOSTIC_EVENT", {{"severity"}, {"text"}}, [this](const Row& row) {
      if (row.Integer(0) != kWarning && row.Integer(0) != kError) return;
      std::string text = ReplaceInvalid(row.Text(1).substr(0, 200));
      std::replace_if(
          text.begin(), text.end(), [](unsigned char c) { return c < 0x20; }, ' ');
      diagnostics_.Report(kProfilerSays, file_, std::move(text));
    });
  }

  /// True when the first row of a table of GPU work tells no process.
  bool LacksProcesses() {
    bool lacks = false;
    for (const auto& event : EventTables()) {
      const Table* table = database_.Find(event.name);
      if (table == nullptr || event.shape != Shape::kGpu) continue;
      const auto status = database_.Scan(*table, {{"globalPid"}}, {}, 1, [&lacks](const Row& row, int64_t) {
        lacks = lacks || row.IsNull(0);
        return false;
      });
      if (!status) continue;  // reported when the table is read
    }
    return lacks;
  }

  /// GPU rows may tell no process; where one process made all calls, it is that one.
  void FindOnlyProcess() {
    if (!LacksProcesses()) return;
    const Table* table = database_.Find("CUPTI_ACTIVITY_KIND_RUNTIME");
    if (table == nullptr || !table->Has("globalTid")) return;
    bool several = false;
    const auto status = database_.Scan(*table, {{"globalTid"}}, {}, max_rows_, [&](const Row& row, int64_t) {
      const int64_t key = ProcessKey(row.Integer(0));
      if (row.IsNull(0) || session_.only_process == key) return true;
      several = session_.only_process.has_value();
      session_.only_process = key;
      return !several;
    });
    if (several || !status) session_.only_process.reset();
  }

  const Database& database_;
  const trace::FileRow file_;
  const uint64_t max_rows_;
  const Names& names_;
  base::Diagnostics& diagnostics_;
  Session session_;
};

}  // namespace

Session ReadSession(const Database& database, trace::FileRow file, uint64_t max_rows, const Names& names,
                    base::Diagnostics& diagnostics) {
  return SessionReader(database, file, max_rows, names, diagnostics).Read();
}

}  // namespace teller::ingest::nsys
