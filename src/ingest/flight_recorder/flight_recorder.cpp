// NCCL Flight Recorder dumps, from whatever notation: one mapper from plain values to collective records.
// Source: torch/csrc/distributed/c10d (NCCLUtils.hpp, TraceUtils.h, FlightRecorder*.hpp) of PyTorch 2.2 to 2.9, dump
// versions 1.x (a list of entries, or "seq_id" and groups by number) and 2.x.
#include "ingest/flight_recorder/flight_recorder.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ingest/common/decimal.hpp"
#include "ingest/common/rank.hpp"
#include "ingest/flight_recorder/notation.hpp"

namespace teller::ingest {

namespace {

using flight_recorder::Value;
using flight_recorder::ValueKind;

constexpr size_t kMaxDump =
    256u << 20;  // the recorder keeps a ring of some thousand entries: a few MB; this is a bound only
constexpr size_t kChunk = 1u << 20;

constexpr base::DiagnosticKind kBadEntry = {
    "flight-recorder.bad-entry", base::Severity::kDataLoss,
    "an entry lacks its group, sequence or name, or has wrong types; it was left out"};
constexpr base::DiagnosticKind kNoRank = {"flight-recorder.no-rank", base::Severity::kDataLoss,
                                          "neither the dump nor the file name tells the rank; the dump was not used"};
constexpr size_t kMaxGroupRanks = 1u << 17;  // larger than any cluster
constexpr size_t kMaxGroupText = 256;        // every record of the group carries it
constexpr size_t kMaxWord = 256;             // names and states
constexpr size_t kMaxFrame = 1024;
constexpr size_t kMaxSizes = 1u << 20;  // one coalesced call of thousands of tensors
constexpr base::DiagnosticKind kBigGroup = {
    "flight-recorder.big-group", base::Severity::kDataLoss,
    "a group has more members, or a longer name, than is believed; the members were left out or the name was cut"};
constexpr base::DiagnosticKind kBadTime = {"flight-recorder.bad-time", base::Severity::kDataLoss,
                                           "a time is beyond any date; it was taken as not told"};
constexpr base::DiagnosticKind kDamaged = {"flight-recorder.damaged", base::Severity::kDataLoss, "the dump ends early"};
constexpr base::DiagnosticKind kTrailing = {"flight-recorder.trailing", base::Severity::kNotice,
                                            "bytes behind the end of the pickle; they were not read"};
constexpr base::DiagnosticKind kRepeated = {
    "flight-recorder.repeated", base::Severity::kDataLoss,
    "an entry that stands several times for itself, or texts that sum to more than the file holds; it was left out"};

base::Result<std::string> ReadWhole(base::ByteSource& source) {
  std::string text;
  std::vector<char> chunk(kChunk);
  while (true) {
    const auto got = source.Read(chunk.data(), chunk.size());
    if (!got) return got.error();
    if (*got == 0) return text;
    if (text.size() + *got > kMaxDump) return base::Error{base::Code::kLimit, "the dump is larger than 256 MiB"};
    text.append(chunk.data(), *got);
  }
}

/// "[0, 1, 2]", "0, 1": the recorder writes ranks as text. Empty when a number or the list is too large.
std::vector<int> RanksFromText(std::string_view text) {
  std::vector<int> ranks;
  int64_t value = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      value = (value < 0 ? 0 : value) * 10 + (c - '0');
      if (value > 100'000'000) return {};
    } else if (value >= 0) {
      ranks.push_back(static_cast<int>(value));
      value = -1;
      if (ranks.size() > kMaxGroupRanks) return {};
    }
  }
  if (value >= 0) ranks.push_back(static_cast<int>(value));
  return ranks;
}

/// Ranks of a group: text, or (version 1.x) a list of numbers. `lost` tells that there were some which are not
/// believed.
std::vector<int> RanksOf(Value told, bool& lost) {
  if (const auto text = told.TextView()) {
    auto ranks = RanksFromText(*text);
    lost = ranks.empty() && text->find_first_of("0123456789") != std::string_view::npos;
    return ranks;
  }
  std::vector<int> ranks;
  lost = told.kind() == ValueKind::kList && told.size() > kMaxGroupRanks;
  for (size_t i = 0; !lost && told.kind() == ValueKind::kList && i < told.size(); ++i) {
    const auto rank = told.at(i).Integer();
    if (!rank || *rank < 0 || *rank > 100'000'000) {
      lost = true;
      return {};
    }
    ranks.push_back(static_cast<int>(*rank));
  }
  return ranks;
}

struct Group {
  std::string text;      ///< "72 EXPERT_MODEL_PARALLEL_GROUP"
  int32_t members = -1;  ///< as CommRecord::members
};

class Mapper {
 public:
  Mapper(trace::FileRow file, trace::Store& store, int rank, size_t bytes)
      : file_(file), store_(store), row_(store.files[file.value()]), rank_(rank), budget_(2 * bytes + (1u << 20)) {}

  void Map(Value root, Value entries) {
    ReadGroups(root.Find("pg_config"));
    std::set<flight_recorder::ValueId> seen;
    for (size_t i = 0; i < entries.size(); ++i) {
      const Value entry = entries.at(i);
      ++row_.records_read;
      if (!seen.insert(entry.id()).second) {
        Drop(kRepeated, i);
      } else {
        ReadEntry(entry, i);
      }
    }
    if (rank_ >= 0) ReadStatus(root.Find("pg_status"), entries);
  }

 private:
  void Drop(const base::DiagnosticKind& kind, size_t index) {
    store_.diagnostics.Report(kind, file_, "entry " + std::to_string(index));
    ++row_.dropped;
  }

  /// Groups by name, from pg_config: {"72": {"name": "72", "desc": "..", "ranks": "[8, 9]"}}, or {72: [8, 9]}.
  void ReadGroups(Value config) {
    for (size_t i = 0; i < config.size(); ++i) {
      const Value pg = config.at(i);
      const bool numbered = pg.kind() == ValueKind::kList;
      if (pg.kind() != ValueKind::kMap && !numbered) continue;
      Group group;
      std::string name = ToText(pg.Find("name"), kMaxGroupText + 1);
      if (pg.Find("name").IsNull()) name = ToText(config.KeyAt(i), kMaxGroupText + 1);
      group.text = name;
      if (const Value desc = pg.Find("desc"); !desc.IsNull() && ToText(desc, 1) != "")
        group.text += " " + ToText(desc, kMaxGroupText + 1);
      bool lost = false;
      std::vector<int> ranks = RanksOf(numbered ? pg : pg.Find("ranks"), lost);
      if (ranks.size() * sizeof(int) > budget_) {
        lost = true;
        ranks.clear();
      }
      budget_ -= ranks.size() * sizeof(int);
      if (lost || group.text.size() > kMaxGroupText)
        store_.diagnostics.Report(kBigGroup, file_, "group " + name.substr(0, 64));
      if (group.text.size() > kMaxGroupText) group.text.resize(kMaxGroupText);
      if (numbered) group.text = NumberedGroup(name, ranks);
      const auto [it, added] = groups_.emplace(std::move(name), std::move(group));
      if (!added || ranks.empty()) continue;
      it->second.members = static_cast<int32_t>(store_.comm_groups.size());
      store_.comm_groups.push_back(std::move(ranks));
    }
  }

  /// Version 1.x numbers groups in the order in which a rank made its own, so one number may mean different groups on
  /// different ranks: the ranks belong to the name. Without them only the group of all (0) is comparable.
  std::string NumberedGroup(const std::string& number, const std::vector<int>& ranks) const {
    if (number == "0") return number;
    if (ranks.empty()) return number + " of rank " + std::to_string(rank_);
    const auto [low, high] = std::minmax_element(ranks.begin(), ranks.end());
    int64_t sum = 0;
    for (const int rank : ranks) sum = (sum * 31 + rank) % 1'000'003;  // tells lists of one length and range apart
    return number + " (" + std::to_string(ranks.size()) + " ranks, " + std::to_string(*low) + ".." +
           std::to_string(*high) + ", #" + std::to_string(sum) + ")";
  }

  void SetGroup(const std::string& name, bool numbered, trace::CommRecord& record) const {
    if (const auto it = groups_.find(name); it != groups_.end()) {
      record.group = it->second.text;
      record.members = it->second.members;
    } else {
      record.group = numbered ? NumberedGroup(name, {}) : name.substr(0, kMaxGroupText);
    }
  }

  /// Key of an entry's group in pg_config; empty when the entry names none.
  static std::string GroupKey(Value entry) {
    const Value pg = entry.Find("process_group");
    if (pg.kind() == ValueKind::kList) return pg.size() > 0 ? ToText(pg.at(0), kMaxGroupText + 1) : std::string();
    if (!pg.IsNull()) return ToText(pg, kMaxGroupText + 1);
    if (const Value name = entry.Find("pg_name"); !name.IsNull()) return ToText(name, kMaxGroupText + 1);
    if (const auto id = entry.Find("pg_id").Integer(); id && *id >= 0 && !entry.Find("seq_id").IsNull())
      return std::to_string(*id);
    return {};
  }

  /// A moment; null, 0 and what is no date (then `fine` becomes false) are not told.
  static trace::Nanos Time(Value entry, std::string_view key, bool& fine) {
    const Value told = entry.Find(key);
    const auto value = told.Integer();
    if (!value && told.kind() == ValueKind::kReal) fine = false;
    if (value && *value > kMaxNanos) fine = false;
    return value && *value > 0 && *value <= kMaxNanos ? *value : trace::kNoTime;
  }

  std::string InnermostFrame(Value entry) const {
    const Value frame = entry.Find("frames").at(0);
    if (frame.kind() != ValueKind::kMap) return {};
    std::string text = ToText(frame.Find("name"), kMaxFrame);
    text += " (" + ToText(frame.Find("filename"), kMaxFrame) + ":" + ToText(frame.Find("line"), kMaxWord) + ")";
    return text;
  }

  bool Sizes(Value entry, std::string& out) const {
    for (const auto* key : {"input_sizes", "input_dtypes"}) {
      const Value value = entry.Find(key);
      if (!value) continue;
      if (!out.empty()) out += ' ';
      if (!Minify(value, std::min(budget_, kMaxSizes), out)) return false;
    }
    return true;
  }

  void ReadEntry(Value entry, size_t index) {
    trace::CommRecord record;
    record.file = file_;
    record.rank = rank_;
    const std::string group = GroupKey(entry);
    const bool p2p = entry.Find("is_p2p").Bool().value_or(false);
    const auto sequence = entry.Find("collective_seq_id").Integer();
    record.sequence = p2p ? -1 : sequence ? *sequence : entry.Find("seq_id").Integer().value_or(-1);
    record.p2p_sequence = p2p ? entry.Find("p2p_seq_id").Integer().value_or(-1) : -1;
    if (const Value op = entry.Find("profiling_name"); !op.IsNull()) record.op = ToText(op, kMaxWord);
    if (const Value state = entry.Find("state"); !state.IsNull()) record.state = ToText(state, kMaxWord);
    if (group.empty() || record.op.empty() || record.state.empty() ||
        (record.sequence < 0 && record.p2p_sequence < 0)) {
      return Drop(kBadEntry, index);
    }
    if (rank_ < 0) {
      ++row_.dropped;  // the missing rank was reported once
      return;
    }
    SetGroup(group, entry.Find("process_group").IsNull() && entry.Find("pg_name").IsNull(), record);
    // Version 1.x tells sends and receives only by their names.
    if (!sequence && (record.op.find(":send") != std::string::npos || record.op.find(":recv") != std::string::npos))
      std::swap(record.sequence, record.p2p_sequence);
    bool times_fine = true;
    record.created = Time(entry, "time_created_ns", times_fine);
    record.started = Time(entry, "time_discovered_started_ns", times_fine);
    record.completed = Time(entry, "time_discovered_completed_ns", times_fine);
    record.frame = InnermostFrame(entry);
    const bool fits = Sizes(entry, record.sizes);
    const size_t texts = record.op.size() + record.state.size() + record.sizes.size() + record.frame.size();
    if (!fits || texts > budget_) return Drop(kRepeated, index);
    budget_ -= texts;
    if (!times_fine) store_.diagnostics.Report(kBadTime, file_, "entry " + std::to_string(index));
    ++row_.spans;
    store_.comm_records.push_back(std::move(record));
  }

  /// Where the ring holds nothing of a group any more, pg_status still tells how far the rank came. Its keys number the
  /// rank's groups in the order of their creation, which is the order of their (numeric) names; that mapping is used
  /// only when every entry of the dump agrees with it.
  std::map<std::string, Value> StatusByGroup(Value status, Value entries) const {
    std::map<int64_t, Value> by_id;
    for (size_t i = 0; i < status.size(); ++i) {
      const auto id = RanksFromText(ToText(status.KeyAt(i), kMaxWord));
      if (id.size() != 1 || status.at(i).kind() != ValueKind::kMap) return {};
      by_id.emplace(id[0], status.at(i));
    }
    std::map<int64_t, std::string> by_name;
    for (const auto& [name, group] : groups_) {
      const auto numbers = RanksFromText(name);
      if (numbers.size() != 1) return {};
      by_name.emplace(numbers[0], name);
    }
    if (by_name.size() != by_id.size()) return {};
    std::map<std::string, Value> out;
    std::map<std::string, int64_t> id_of;
    auto name = by_name.begin();
    for (const auto& [id, value] : by_id) {
      id_of[name->second] = id;
      out.emplace((name++)->second, value);
    }
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto it = id_of.find(GroupKey(entries.at(i)));
      if (it == id_of.end()) continue;
      if (entries.at(i).Find("pg_id").Integer().value_or(it->second) != it->second) return {};
    }
    return out;
  }

  void ReadStatus(Value status, Value entries) {
    for (const auto& [name, value] : StatusByGroup(status, entries)) {
      trace::CommRecord record;
      record.file = file_;
      record.rank = rank_;
      SetGroup(name, false, record);
      for (const auto& [key, state] : {std::pair("last_enqueued_collective", "last-scheduled"),
                                       std::pair("last_completed_collective", "last-completed")}) {
        record.sequence = value.Find(key).Integer().value_or(-1);
        record.state = state;
        if (record.sequence >= 0) store_.comm_records.push_back(record);
      }
    }
  }

  trace::FileRow file_;
  trace::Store& store_;
  trace::File& row_;
  int rank_;
  size_t budget_;  ///< bytes that names and lists may still take: a pickle can name one text very often
  std::map<std::string, Group> groups_;
};

}  // namespace

bool LooksLikeFlightRecorder(std::string_view head) {
  const auto has = [&](std::string_view key) { return head.find(key) != std::string_view::npos; };
  if (flight_recorder::LooksLikePickle(head))
    return has("pg_config") || has("pg_status") || (has("profiling_name") && has("seq_id"));
  const size_t first = head.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string_view::npos || head[first] != '{') return false;
  return !has("\"traceEvents\"") && ((has("\"pg_config\"") && (has("\"nccl_version\"") || has("\"ranks\""))) ||
                                     has("\"collective_seq_id\"") || (has("\"entries\"") && has("\"pg_status\"")));
}

base::Status ReadFlightRecorder(base::ByteSource& source, trace::FileRow file, trace::Store& store,
                                const base::Limits& limits) {
  (void)limits;  // one dump is one document; kMaxDump bounds it
  auto text = ReadWhole(source);
  if (!text) return text.error();
  if (!source.damage().empty()) store.diagnostics.Report(kDamaged, file, std::string(source.damage()));
  trace::File& row = store.files[file.value()];
  row.kind = "flight-recorder";
  row.bytes = text->size();
  flight_recorder::PickleEnd end;
  auto tree = flight_recorder::LooksLikePickle(*text) ? flight_recorder::ParsePickle(*text, end)
                                                      : flight_recorder::ParseJson(*text);
  if (!tree) {
    base::Error error = tree.error();
    error.path = row.path;
    return error;
  }
  if (end.trailing > 0) store.diagnostics.Report(kTrailing, file, std::to_string(end.trailing) + " bytes");
  const Value root(*tree, tree->root);
  const Value entries = root.kind() == ValueKind::kList ? root : root.Find("entries");
  // A dump of a rank that recorded nothing has groups and no entries.
  const bool groups_only = !entries && root.Find("pg_config").kind() == ValueKind::kMap;
  const bool listed = entries.kind() == ValueKind::kList && (root.kind() == ValueKind::kMap || entries.size() > 0);
  if (!listed && !groups_only) {
    return base::Error{base::Code::kBadFormat, "a Flight Recorder dump has a list of \"entries\"", row.path};
  }
  const auto written = root.Find("rank").Integer();
  const int rank = written && *written >= 0 && *written < 100'000'000 ? static_cast<int>(*written)
                                                                      : RankFromPath(row.path).value_or(-1);
  if (rank >= 0) row.rank = rank;
  if (rank < 0) store.diagnostics.Report(kNoRank, file, {});
  Mapper(file, store, rank, text->size()).Map(root, entries);
  return {};
}

}  // namespace teller::ingest
