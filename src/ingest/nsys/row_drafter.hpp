#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingest/common/block.hpp"
#include "ingest/common/worker.hpp"
#include "ingest/nsys/database.hpp"
#include "ingest/nsys/names.hpp"
#include "ingest/nsys/schema.hpp"
#include "ingest/nsys/session.hpp"

namespace teller::ingest::nsys {

/// Gives the rows of event tables their meaning: spans, instants, args, names, in a Draft. One per worker and file.
/// Every row adds one to Draft::tally.read and one to one of its parts.
class RowDrafter {
 public:
  RowDrafter(Worker& worker, const Names& names, const Session& session, trace::FileRow file);

  /// Begins an empty draft for rows of `table`.
  void Begin(const EventTable& table);
  void Add(const Row& row, int64_t row_number);
  Draft& draft() { return draft_; }

 private:
  struct StreamKey {
    int64_t process = 0;
    int64_t context = 0;
    int64_t stream = 0;
    friend bool operator==(const StreamKey&, const StreamKey&) = default;
  };
  struct StreamHash {
    size_t operator()(const StreamKey& key) const;
  };

  void AddGpu(const Row& row);
  void AddHost(const Row& row);
  void AddNvtx(const Row& row);
  void AddRange(const Row& row, bool crosses_threads);
  void AddSample(const Row& row);

  bool ReadBegin(const Row& row, int column, trace::Nanos& begin);
  trace::Nanos ReadDuration(const Row& row, int column, trace::Nanos begin);
  uint32_t SmallId(const Row& row, int column);

  uint32_t HostLane(const Row& row, int column);
  uint32_t StreamLane(const Row& row);
  uint32_t CategoryOf(std::string_view text, trace::SpanKind kind);
  uint32_t InternText(std::string_view text);
  uint32_t NameById(const Row& row, int column, bool api_call);
  uint32_t GpuName(const Row& row);
  uint32_t CopyName(const Row& row);
  uint32_t NumberedName(std::string_view what, int64_t number);
  std::string_view NvtxText(const Row& row);
  void Drop(const base::DiagnosticKind& kind);
  void Report(const base::DiagnosticKind& kind, std::string_view what = {});

  Worker& worker_;
  const Names& names_;
  const Session& session_;
  const trace::FileRow file_;
  const EventTable* table_ = nullptr;
  int64_t row_number_ = 0;
  Draft draft_;
  std::vector<uint32_t> by_row_;                   // worker id of a row of Names, + 1; 0 = not yet
  std::vector<uint32_t> calls_by_row_;             // the same for calls, whose version is cut off
  std::unordered_map<int64_t, uint32_t> missing_;  // ids that Names does not have
  std::unordered_map<int64_t, uint32_t> host_lanes_;
  std::unordered_map<StreamKey, uint32_t, StreamHash> stream_lanes_;
  std::array<uint32_t, 16 * 8 * 8> copies_ = {};  // by kind, source, target; worker id + 1
  std::pair<int64_t, uint32_t> last_host_ = {-1, 0};
  std::pair<StreamKey, uint32_t> last_stream_ = {{-1, -1, -1}, 0};
  std::string scratch_;
};

}  // namespace teller::ingest::nsys
