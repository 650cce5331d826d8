#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/limits.hpp"
#include "ingest/log/line_splitter.hpp"
#include "ingest/log/nccl_line.hpp"
#include "ingest/log/parsed_line.hpp"
#include "ingest/log/wrapper.hpp"
#include "trace/store.hpp"

namespace teller::ingest::log {

/// Turns segments into records: peels prefixes, finds the grammar, joins tracebacks, continuation lines and the
/// updates of a progress bar. Several processes may write into one stream, so every process has its own open record.
/// Diagnostics: log.line-cut, log.record-cut, log.not-utf8, log.no-grammar. Threads: confined.
class RecordBuilder {
 public:
  RecordBuilder(trace::FileRow file, trace::Store& store, const base::Limits& limits)
      : file_(file), store_(store), limits_(limits), unwrapper_(limits) {}

  void Add(const Segment& segment);
  /// Fills what only the whole file tells (which pid is which rank) and the File row.
  void Finish();

 private:
  enum class Mode { kPlain, kFrames, kAfterException };
  struct Stream {
    size_t record = static_cast<size_t>(-1);
    uint32_t last_line = 0;
    Mode mode = Mode::kPlain;
    Stamp stamp;
    uint32_t quote_left = 0;  // lines for which a quotation that the record left open may still go on
    int64_t bar_total = -1;
    int64_t bar_done = 0;
  };

  void AddInner(uint32_t line);
  void AddLine(std::string_view text, uint32_t line);
  void AddText(std::string_view text, const Origin& origin, uint32_t line);
  void AddWhole(std::string_view text, ParsedLine parsed, const Origin& origin, uint32_t line);
  void AddHeader(Stream& stream, const ParsedLine& parsed, const Origin& origin, uint32_t line);
  void AddBare(Stream& stream, std::string_view text, const Stamp& stamp, const Origin& origin, uint32_t line);
  void AddBar(Stream& stream, std::string_view text, const ProgressBar& bar, const Origin& origin, uint32_t line);
  bool Continues(Stream& stream, std::string_view text);
  bool ContinuesTraceback(Stream& stream, std::string_view text);
  void NoteTracebackLine(Stream& stream, std::string_view text);
  void Begin(Stream& stream, const ParsedLine& parsed, const Origin& origin, uint32_t line);
  void Extend(Stream& stream, std::string_view text, uint32_t line);
  void SettleKernelStamp(Stamp& stamp);
  void SpreadTriton();
  Stream& StreamOf(const Origin& origin);
  std::string Place(uint32_t line) const;

  trace::FileRow file_;
  trace::Store& store_;
  const base::Limits& limits_;
  Unwrapper unwrapper_;
  std::unordered_map<std::string, Stream> streams_;
  bool seen_llama_ = false;  // a line of llama.cpp was seen: its bare lines can be told
  uint32_t last_line_ = 1;
  std::unordered_set<std::string> nccl_hosts_;  // that stood at the front of NCCL lines
  Stamp kernel_;                                // of the last kernel message
  std::optional<NcclHeader> nccl_;              // of the text that is being added
  Origin line_origin_;                          // of the current physical line; a bar redrawn on it has the same writer
  std::string clean_;
  std::string_view tail_;                // end of the current line where it was cut
  std::map<size_t, std::string> tails_;  // of records about finished requests, by row
  size_t first_record_ = static_cast<size_t>(-1);
  uint64_t segments_ = 0;
  uint64_t joined_ = 0;
  uint64_t dropped_ = 0;
  uint64_t records_ = 0;
};

}  // namespace teller::ingest::log
