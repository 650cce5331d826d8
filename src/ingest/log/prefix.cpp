#include "ingest/log/cursor.hpp"
#include "ingest/log/grammar.hpp"
#include "ingest/log/parsed_line.hpp"

namespace teller::ingest::log {

namespace {

constexpr size_t kMaxPrefix = 160;  // a prefix is short; longer parentheses are text

/// "TP0", "DP4" and so on: the parallel dimension and its index.
bool ParallelTag(std::string_view word, std::string_view& dimension, int& index) {
  size_t n = 0;
  while (n < word.size() && IsUpper(word[n])) ++n;
  if (n < 2 || n > 4 || n == word.size()) return false;
  Cursor digits(word.substr(n));
  int64_t value = 0;
  if (!digits.Number(1, 5, value) || !digits.done()) return false;
  dimension = word.substr(0, n);
  index = static_cast<int>(value);
  return dimension == "TP" || dimension == "DP" || dimension == "PP" || dimension == "EP" || dimension == "ATTN" ||
         dimension == "PCP" || dimension == "DCP";
}

/// Rank of a name such as Worker_TP1 or Worker_DP0_TP1_EP1: known when only one dimension is larger than zero.
std::optional<int> RankFromTags(std::string_view name) {
  std::optional<int> tp;
  bool other = false;
  while (!name.empty()) {
    const size_t end = name.find('_');
    std::string_view dimension;
    int index = 0;
    if (ParallelTag(name.substr(0, end), dimension, index)) {
      if (dimension == "TP") tp = index;
      if ((dimension == "DP" || dimension == "PP") && index > 0) other = true;
    }
    if (end == std::string_view::npos) break;
    name.remove_prefix(end + 1);
  }
  return other ? std::nullopt : tp;
}

/// "(EngineCore_DP0 pid=12) ", "(Worker rank=1 pid=7) ", "(RayWorker pid=5, ip=10.0.0.1) ", "(raylet) ".
bool PeelProcess(std::string_view& line, Origin& origin) {
  if (line.empty() || line.front() != '(') return false;
  const size_t close = line.substr(0, kMaxPrefix).find(')');
  if (close == std::string_view::npos) return false;
  Cursor c(line.substr(1, close - 1));
  const std::string_view name = c.Word("_.:-/");
  if (name.empty()) return false;
  bool tagged = name == "raylet" || name == "gcs_server" || name == "autoscaler";
  std::optional<int64_t> pid;
  std::optional<int> rank = RankFromTags(name);
  while (!c.done()) {
    if (!c.Eat(' ') && !c.Eat(',')) return false;
    int64_t value = 0;
    std::string_view dimension;
    int index = 0;
    if (c.Eat("pid=")) {
      if (!c.Number(1, 10, value)) return false;
      pid = value;
      tagged = true;
    } else if (c.Eat("rank=")) {
      if (!c.Number(1, 6, value)) return false;
      rank = static_cast<int>(value);
      tagged = true;
    } else {
      const std::string_view word = c.Word("_.:=+-");
      if (ParallelTag(word, dimension, index) && dimension == "TP") rank = index;
      if (word.empty() && c.peek() != ' ') return false;
    }
  }
  if (!tagged) return false;
  origin.process = std::string(name);
  if (pid) origin.pid = pid;
  if (rank) origin.rank = rank;
  line.remove_prefix(close + 1);
  if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  return true;
}

/// "[rank0]: " (torch), "[default3]:" (torchrun). One space belongs to it; more are indentation.
bool PeelRank(std::string_view& line, Origin& origin) {
  Cursor c(line);
  int64_t rank = 0;
  if (!c.Eat("[rank") && !c.Eat("[default")) return false;
  c.Eat(' ');
  if (!c.Number(1, 6, rank) || !c.Eat("]:")) return false;
  origin.rank = static_cast<int>(rank);
  line = c.rest();
  if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  return true;
}

/// "vllm-0  | text" (docker compose).
bool PeelCompose(std::string_view& line, Origin& origin) {
  Cursor c(line);
  const std::string_view name = c.Word("_.-");
  if (name.size() < 2 || name.size() > 64 || !IsAlpha(name.front()) || !c.Eat(' ')) return false;
  c.SkipSpaces();
  if (!c.Eat("| ")) return false;
  origin.host = std::string(name);
  line = c.rest();
  return true;
}

/// "2026-01-02T03:04:05.123456789Z stdout F text" (Kubernetes container log).
bool PeelCri(std::string_view& line, Origin& origin) {
  Cursor c(line);
  Stamp stamp;
  if (!ReadDateTime(c, stamp) || !(c.Eat(" stdout ") || c.Eat(" stderr ")) || !(c.Eat("F ") || c.Eat("P ")))
    return false;
  origin.stamp = stamp;
  line = c.rest();
  return true;
}

/// "Feb 14 05:03:41 host prog[12]: text", "2025-01-17T17:10:43+0000 host prog[12]: text" (syslog, journal).
bool PeelSyslog(std::string_view& line, Origin& origin) {
  Cursor c(line);
  Stamp stamp;
  const bool month = ReadMonthNameTime(c, stamp);
  if (!month && !(ReadDateTime(c, stamp) && (stamp.open & trace::kZoneOpen) == 0)) return false;
  if (!c.Eat(' ')) return false;
  const std::string_view host = c.Word("_.-");
  if (host.empty() || !c.Eat(' ')) return false;
  const std::string_view program = c.Word("_.-/@");
  if (program.empty()) return false;
  int64_t pid = 0;
  const bool has_pid = c.Eat('[') && c.Number(1, 10, pid) && c.Eat(']');
  if (!c.Eat(": ")) return false;
  // "2026-.. INFO module: text" is Python logging; behind a month's name only syslog puts host and program.
  if (!has_pid && !month && program != "kernel") return false;
  origin.stamp = stamp;
  origin.host = std::string(host);
  origin.kernel = program == "kernel";
  if (has_pid) origin.pid = pid;
  if (has_pid || !origin.kernel) origin.process = std::string(program);
  line = c.rest();
  return true;
}

/// "[54321] 0.35.412.409 I text": a router's child server.
bool PeelPort(std::string_view& line, Origin& origin) {
  Cursor c(line);
  int64_t port = 0;
  Stamp stamp;
  if (!c.Eat('[') || !c.Number(2, 5, port) || !c.Eat("] ")) return false;
  const std::string_view rest = c.rest();
  const std::string_view bare = TrimLeft(rest);
  const bool timing = StartsWith(bare, "eval time ") || StartsWith(bare, "total time ");
  if (!ReadMinuteDots(c, stamp) && !LooksLikeLlama(rest) && !timing) return false;
  origin.host = "port " + std::to_string(port);  // each child has its own open record
  line = rest;
  return true;
}

/// "[1,3]<stdout>: text" (mpirun --tag-output): job and rank.
bool PeelMpi(std::string_view& line, Origin& origin) {
  Cursor c(line);
  int64_t job = 0;
  int64_t rank = 0;
  if (!c.Eat('[') || !c.Number(1, 9, job) || !c.Eat(',') || !c.Number(1, 6, rank) || !c.Eat("]<")) return false;
  if (!c.Eat("stdout>:") && !c.Eat("stderr>:")) return false;
  c.Eat(' ');
  origin.rank = static_cast<int>(rank);
  line = c.rest();
  return true;
}

/// "[Router (Rust)] 2025-03-08 02:33:09 - INFO - text": SGLang's router in its first form.
bool PeelRouter(std::string_view& line, Origin& origin) {
  Cursor c(line);
  if (!c.Eat("[Router (Rust)] ")) return false;
  origin.process = "router";
  line = c.rest();
  return true;
}

}  // namespace

void PeelPrefixes(std::string_view& line, Origin& origin) {
  // Each prefix is at least three bytes, so this ends; the bound keeps a hostile line of prefixes cheap.
  for (int depth = 0; depth < 16; ++depth) {
    const bool peeled = PeelProcess(line, origin) || PeelRank(line, origin) || PeelCri(line, origin) ||
                        PeelSyslog(line, origin) || PeelCompose(line, origin) || PeelPort(line, origin) ||
                        PeelMpi(line, origin) || PeelRouter(line, origin);
    if (!peeled) return;
  }
}

}  // namespace teller::ingest::log
