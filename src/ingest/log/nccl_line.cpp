#include "ingest/log/nccl_line.hpp"

#include <algorithm>
#include <array>

#include "ingest/log/cursor.hpp"

namespace teller::ingest::log {

namespace {

constexpr size_t kMaxHeader = 400;  // host, ids and a source path
constexpr std::string_view kMark = " NCCL ";
constexpr std::array<std::string_view, 5> kKinds = {"INFO", "WARN", "TRACE", "CALL", "ERROR"};

bool IsHostChar(char c) {
  return IsAlnum(c) || c == '_' || c == '.' || c == '-';
}

/// Start of the host name whose last character stands before `end`, not before `floor`.
size_t HostBegin(std::string_view text, size_t floor, size_t end, const std::unordered_set<std::string>& hosts) {
  size_t begin = end;
  while (begin > floor && IsHostChar(text[begin - 1]) && end - begin < 256) --begin;
  for (size_t at = begin; at < end; ++at) {
    if (hosts.count(std::string(text.substr(at, end - at))) > 0) return at;
  }
  return begin;
}

}  // namespace

trace::LogLevel NcclLevel(std::string_view kind) {
  return kind == "WARN"    ? trace::LogLevel::kWarning
         : kind == "ERROR" ? trace::LogLevel::kError
                           : trace::LogLevel::kInfo;
}

std::optional<NcclHeader> ParseNcclHeader(std::string_view text) {
  const size_t mark = text.substr(0, kMaxHeader).find(kMark);
  if (mark == std::string_view::npos) return std::nullopt;
  Cursor c(text);
  NcclHeader out;
  out.host = c.Word("_.-");
  int64_t device = -1;
  if (out.host.empty() || !c.Eat(':') || !c.Number(1, 10, out.pid) || !c.Eat(':') || !c.Number(1, 10, out.tid))
    return std::nullopt;
  if (c.Eat(" [") && !(c.Number(1, 4, device) && c.Eat(']'))) return std::nullopt;
  if (c.at() > mark) return std::nullopt;
  out.device = static_cast<int32_t>(device);
  out.logger = Trim(text.substr(c.at(), mark - c.at()));
  c.Move(mark + kMark.size());
  out.kind = c.Word("");
  if (std::find(kKinds.begin(), kKinds.end(), out.kind) == kKinds.end()) return std::nullopt;
  c.Eat(' ');
  out.message = c.at();
  return out;
}

std::optional<NcclHeader> FindNcclHeader(std::string_view text, size_t from,
                                         const std::unordered_set<std::string>& hosts) {
  for (size_t mark = text.find(kMark, from); mark != std::string_view::npos; mark = text.find(kMark, mark + 1)) {
    // The header that belongs to this mark is the one that begins last before it.
    const size_t floor = std::max(from, mark > kMaxHeader ? mark - kMaxHeader : 0);
    for (size_t colon = mark; colon > floor; --colon) {
      if (text[colon - 1] != ':') continue;
      const size_t end = colon - 1;
      if (end == floor || !IsHostChar(text[end - 1]) || colon >= text.size() || !IsDigit(text[colon])) continue;
      const size_t begin = HostBegin(text, floor, end, hosts);
      auto header = ParseNcclHeader(text.substr(begin));
      if (!header || begin + header->host.size() != end) continue;
      // "10:00:00 NCCL INFO" is a time of day, unless there is such a host.
      const bool digits = std::all_of(header->host.begin(), header->host.end(), IsDigit);
      if (digits && hosts.count(std::string(header->host)) == 0) continue;
      header->begin = begin;
      header->message += begin;
      return header;
    }
  }
  return std::nullopt;
}

}  // namespace teller::ingest::log
