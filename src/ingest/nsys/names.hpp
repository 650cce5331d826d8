#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingest/nsys/database.hpp"

namespace teller::ingest::nsys {

/// The strings of an export (table StringIds) by their ids. Threads: read only once filled.
class Names {
 public:
  /// Errors: as Database::Scan; what was read before stays.
  base::Status Read(const Database& database, uint64_t max_rows);

  size_t size() const { return ends_.size(); }
  /// Row of an id: a number below size().
  std::optional<uint32_t> Find(int64_t id) const;
  /// Bytes as in the export.
  std::string_view Text(uint32_t row) const {
    const size_t begin = row == 0 ? 0 : ends_[row - 1];
    return std::string_view(bytes_).substr(begin, ends_[row] - begin);
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
  std::vector<std::pair<int64_t, uint32_t>> by_id_;  // sorted
  std::vector<uint32_t> dense_;                      // by id, where ids are small numbers; row + 1, 0 = none
};

/// An NVTX text that PyTorch's emit_nvtx wrote: "name, seq = 1, op_id = 2, sizes = [[2, 3]]".
struct OpText {
  std::string_view name;
  std::string_view sizes;  ///< JSON text; empty when not told
};

/// The parts of such a text; nothing when it is none.
std::optional<OpText> ParseOpText(std::string_view text);

/// True for ranges that communication and math libraries set around their own calls ("ncclAllReduce", "MPI_Send"): they
/// are calls, not marks of the program.
bool IsLibraryRange(std::string_view text);

/// Name of a CUDA call without the version that the export puts behind it ("cudaLaunchKernel_v7000").
std::string_view WithoutVersion(std::string_view name);

}  // namespace teller::ingest::nsys
