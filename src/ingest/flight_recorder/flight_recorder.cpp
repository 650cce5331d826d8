// NCCL Flight Recorder dumps in JSON form. Source: torch/csrc/distributed/c10d/FlightRecorder (version 2.x keys).
#include "ingest/flight_recorder/flight_recorder.hpp"

#include <simdjson.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ingest/common/decimal.hpp"
#include "ingest/common/rank.hpp"

namespace teller::ingest {

namespace {

namespace sj = simdjson::dom;

constexpr size_t kMaxDump =
    1u << 30;  // the recorder keeps a ring of some thousand entries: a few MB; this is a bound only
constexpr size_t kChunk = 1u << 20;

constexpr base::DiagnosticKind kBadEntry = {
    "flight-recorder.bad-entry", base::Severity::kDataLoss,
    "an entry lacks its group, sequence or name, or has wrong types; it was left out"};
constexpr base::DiagnosticKind kNoRank = {"flight-recorder.no-rank", base::Severity::kDataLoss,
                                          "neither the dump nor the file name tells the rank; the dump was not used"};
constexpr size_t kMaxGroupRanks = 1u << 17;  // larger than any cluster
constexpr size_t kMaxGroupText = 256;        // every record of the group carries it
constexpr base::DiagnosticKind kBigGroup = {
    "flight-recorder.big-group", base::Severity::kDataLoss,
    "a group has more members, or a longer name, than is believed; the members were left out or the name was cut"};
constexpr base::DiagnosticKind kBadTime = {"flight-recorder.bad-time", base::Severity::kDataLoss,
                                           "a time is beyond any date; it was taken as not told"};
constexpr base::DiagnosticKind kDamaged = {"flight-recorder.damaged", base::Severity::kDataLoss, "the dump ends early"};

base::Result<std::string> ReadWhole(base::ByteSource& source) {
  std::string text;
  std::vector<char> chunk(kChunk);
  while (true) {
    const auto got = source.Read(chunk.data(), chunk.size());
    if (!got) return got.error();
    if (*got == 0) return text;
    if (text.size() + *got > kMaxDump) return base::Error{base::Code::kLimit, "the dump is larger than 1 GiB"};
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

struct Group {
  std::string text;      ///< "72 EXPERT_MODEL_PARALLEL_GROUP"
  int32_t members = -1;  ///< as CommRecord::members
};

std::string Text(sj::element element) {
  std::string_view text;
  if (element.get(text) == simdjson::SUCCESS) return std::string(text);
  int64_t number = 0;
  if (element.get(number) == simdjson::SUCCESS) return std::to_string(number);
  return simdjson::minify(element);
}

std::string Field(sj::object object, std::string_view key) {
  sj::element element;
  if (object[key].get(element) != simdjson::SUCCESS || element.is_null()) return {};
  return Text(element);
}

int64_t Integer(sj::object object, std::string_view key, int64_t otherwise) {
  int64_t value = 0;
  return object[key].get(value) == simdjson::SUCCESS ? value : otherwise;
}

/// A moment; null, 0 and what is no date (then `fine` becomes false) are not told.
trace::Nanos Time(sj::object object, std::string_view key, bool& fine) {
  const int64_t value = Integer(object, key, 0);
  if (value > kMaxNanos) fine = false;
  return value > 0 && value <= kMaxNanos ? value : trace::kNoTime;
}

/// Groups by name, from pg_config: {"72": {"name": "72", "desc": "..", "ranks": "[8, 9]"}}.
std::map<std::string, Group> ReadGroups(sj::object root, trace::FileRow file, trace::Store& store) {
  std::map<std::string, Group> groups;
  sj::object config;
  if (root["pg_config"].get(config) != simdjson::SUCCESS) return groups;
  for (const auto field : config) {
    sj::object pg;
    if (field.value.get(pg) != simdjson::SUCCESS) continue;
    Group group;
    std::string name = Field(pg, "name");
    if (name.empty()) name = std::string(field.key);
    group.text = name;
    if (const std::string desc = Field(pg, "desc"); !desc.empty()) group.text += " " + desc;
    sj::element told;
    std::string text;
    if (pg["ranks"].get(told) == simdjson::SUCCESS && !told.is_null()) text = Text(told);
    std::vector<int> ranks = RanksFromText(text);
    const bool lost = ranks.empty() && text.find_first_of("0123456789") != std::string::npos;
    if (lost || group.text.size() > kMaxGroupText) {
      store.diagnostics.Report(kBigGroup, file, "group " + name.substr(0, 64));
    }
    if (group.text.size() > kMaxGroupText) group.text.resize(kMaxGroupText);
    const auto [it, added] = groups.emplace(std::move(name), std::move(group));
    if (!added || ranks.empty()) continue;
    it->second.members = static_cast<int32_t>(store.comm_groups.size());
    store.comm_groups.push_back(std::move(ranks));
  }
  return groups;
}

std::string InnermostFrame(sj::object entry) {
  sj::array frames;
  sj::object frame;
  if (entry["frames"].get(frames) != simdjson::SUCCESS || frames.size() == 0) return {};
  if (frames.at(0).get(frame) != simdjson::SUCCESS) return {};
  return Field(frame, "name") + " (" + Field(frame, "filename") + ":" + Field(frame, "line") + ")";
}

std::string Sizes(sj::object entry) {
  std::string out;
  for (const char* key : {"input_sizes", "input_dtypes"}) {
    sj::element element;
    if (entry[key].get(element) != simdjson::SUCCESS) continue;
    if (!out.empty()) out += ' ';
    out += simdjson::minify(element);
  }
  return out;
}

bool ReadEntry(sj::object entry, const std::map<std::string, Group>& groups, trace::CommRecord& record,
               bool& times_fine) {
  sj::array pg;
  sj::element name;
  if (entry["process_group"].get(pg) != simdjson::SUCCESS || pg.at(0).get(name) != simdjson::SUCCESS) return false;
  const std::string group = Text(name);
  if (const auto it = groups.find(group); it != groups.end()) {
    record.group = it->second.text;
    record.members = it->second.members;
  } else {
    record.group = group.substr(0, kMaxGroupText);
  }
  bool p2p = false;
  if (entry["is_p2p"].get(p2p) != simdjson::SUCCESS) p2p = false;
  const int64_t sequence = Integer(entry, "collective_seq_id", -1);
  const int64_t p2p_sequence = Integer(entry, "p2p_seq_id", -1);
  record.sequence = p2p ? -1 : sequence;
  record.p2p_sequence = p2p ? p2p_sequence : -1;
  record.op = Field(entry, "profiling_name");
  record.state = Field(entry, "state");
  if (record.op.empty() || record.state.empty() || (record.sequence < 0 && record.p2p_sequence < 0)) return false;
  record.sizes = Sizes(entry);
  record.created = Time(entry, "time_created_ns", times_fine);
  record.started = Time(entry, "time_discovered_started_ns", times_fine);
  record.completed = Time(entry, "time_discovered_completed_ns", times_fine);
  record.frame = InnermostFrame(entry);
  return true;
}

/// Where the ring holds nothing of a group any more, pg_status still tells how far the rank came. Its keys number the
/// rank's groups in the order of their creation, which is the order of their (numeric) names; that mapping is used only
/// when every entry of the dump agrees with it.
std::map<std::string, sj::object> StatusByGroup(sj::object root, const std::map<std::string, Group>& groups) {
  sj::object status;
  if (root["pg_status"].get(status) != simdjson::SUCCESS) return {};
  std::map<int64_t, sj::object> by_id;
  for (const auto field : status) {
    const auto ids = RanksFromText(field.key);
    sj::object value;
    if (ids.size() != 1 || field.value.get(value) != simdjson::SUCCESS) return {};
    by_id.emplace(ids[0], value);
  }
  std::map<int64_t, std::string> by_name;
  for (const auto& [name, group] : groups) {
    const auto numbers = RanksFromText(name);
    if (numbers.size() != 1) return {};
    by_name.emplace(numbers[0], name);
  }
  if (by_name.size() != by_id.size()) return {};
  std::map<std::string, sj::object> out;
  std::map<std::string, int64_t> id_of;
  auto name = by_name.begin();
  for (const auto& [id, value] : by_id) {
    id_of[name->second] = id;
    out.emplace((name++)->second, value);
  }
  sj::array entries;
  if (root["entries"].get(entries) != simdjson::SUCCESS) return {};
  for (const auto element : entries) {
    sj::object entry;
    sj::array pg;
    if (element.get(entry) != simdjson::SUCCESS || entry["process_group"].get(pg) != simdjson::SUCCESS ||
        pg.size() == 0)
      continue;
    const auto it = id_of.find(Text(pg.at(0)));
    if (it != id_of.end() && Integer(entry, "pg_id", it->second) != it->second) return {};
  }
  return out;
}

}  // namespace

bool LooksLikeFlightRecorder(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string_view::npos || head[first] != '{') return false;
  const auto has = [&](std::string_view key) { return head.find(key) != std::string_view::npos; };
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
  sj::parser parser;
  sj::element document;
  if (const auto error = parser.parse(*text).get(document); error != simdjson::SUCCESS) {
    return base::Error{base::Code::kBadFormat, std::string("no JSON document: ") + simdjson::error_message(error),
                       row.path};
  }
  sj::object root;
  sj::array entries;
  if (document.get(root) != simdjson::SUCCESS || root["entries"].get(entries) != simdjson::SUCCESS) {
    return base::Error{base::Code::kBadFormat, "a Flight Recorder dump has an object with \"entries\"", row.path};
  }
  const int64_t written = Integer(root, "rank", -1);
  const int rank = written >= 0 && written < 100'000'000 ? static_cast<int>(written)
                                                              : RankFromPath(row.path).value_or(-1);
  if (rank >= 0) row.rank = rank;
  if (rank < 0) store.diagnostics.Report(kNoRank, file, {});
  const auto groups = ReadGroups(root, file, store);
  uint64_t index = 0;
  for (const auto element : entries) {
    ++row.records_read;
    trace::CommRecord record;
    record.file = file;
    record.rank = rank;
    sj::object entry;
    bool times_fine = true;
    if (element.get(entry) != simdjson::SUCCESS || !ReadEntry(entry, groups, record, times_fine)) {
      store.diagnostics.Report(kBadEntry, file, "entry " + std::to_string(index));
      ++row.dropped;
    } else if (rank < 0) {
      ++row.dropped;
    } else {
      if (!times_fine) store.diagnostics.Report(kBadTime, file, "entry " + std::to_string(index));
      ++row.spans;
      store.comm_records.push_back(std::move(record));
    }
    ++index;
  }
  if (rank < 0) return {};
  for (const auto& [name, status] : StatusByGroup(root, groups)) {
    const auto& group = groups.at(name);
    trace::CommRecord record;
    record.file = file;
    record.rank = rank;
    record.group = group.text;
    record.members = group.members;
    for (const auto& [key, state] : {std::pair("last_enqueued_collective", "last-scheduled"),
                                     std::pair("last_completed_collective", "last-completed")}) {
      record.sequence = Integer(status, key, -1);
      record.state = state;
      if (record.sequence >= 0) store.comm_records.push_back(record);
    }
  }
  return {};
}

}  // namespace teller::ingest
