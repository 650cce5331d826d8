#include "ingest/nsys/names.hpp"

#include <algorithm>
#include <array>

namespace teller::ingest::nsys {

namespace {

constexpr uint64_t kMaxStrings = 0xFFFFFFF0u;  // rows are 32 bits
constexpr size_t kVersionDigits = 4;           // "_v3020", "_v11010"; "_v2" is part of a name

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

/// The bracketed list at the front of `text`, or nothing when its brackets do not match.
std::string_view ListAt(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']' && --depth == 0) return text.substr(0, i + 1);
    if (depth == 0) break;
  }
  return {};
}

}  // namespace

base::Status Names::Read(const Database& database, uint64_t max_rows) {
  const Table* table = database.Find("StringIds");
  if (table == nullptr) return {};
  const auto status =
      database.Scan(*table, {{"id"}, {"value"}}, {}, std::min(max_rows, kMaxStrings), [this](const Row& row, int64_t) {
        by_id_.emplace_back(row.Integer(0), static_cast<uint32_t>(ends_.size()));
        bytes_.append(row.Text(1));
        ends_.push_back(bytes_.size());
        return true;
      });
  std::sort(by_id_.begin(), by_id_.end());
  const bool small = !by_id_.empty() && by_id_.front().first >= 0 &&
                     by_id_.back().first < static_cast<int64_t>(4 * by_id_.size() + 65536);
  if (small) {
    dense_.resize(static_cast<size_t>(by_id_.back().first) + 1, 0);
    for (const auto& [id, row] : by_id_) dense_[static_cast<size_t>(id)] = row + 1;
    by_id_ = {};
  }
  return status;
}

std::optional<uint32_t> Names::Find(int64_t id) const {
  if (!dense_.empty()) {
    if (id < 0 || id >= static_cast<int64_t>(dense_.size()) || dense_[static_cast<size_t>(id)] == 0) {
      return std::nullopt;
    }
    return dense_[static_cast<size_t>(id)] - 1;
  }
  const auto it = std::lower_bound(by_id_.begin(), by_id_.end(), std::pair<int64_t, uint32_t>(id, 0));
  if (it == by_id_.end() || it->first != id) return std::nullopt;
  return it->second;
}

std::optional<OpText> ParseOpText(std::string_view text) {
  static constexpr std::array<std::string_view, 2> kMarks = {", seq = ", ", op_id = "};
  static constexpr std::string_view kSizes = ", sizes = ";
  size_t end = std::string_view::npos;
  for (const auto mark : kMarks) {
    const size_t at = text.find(mark);
    if (at == std::string_view::npos || at + mark.size() >= text.size() || !IsDigit(text[at + mark.size()])) continue;
    end = std::min(end, at);
  }
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  OpText out;
  const size_t sizes = text.find(kSizes);
  if (sizes != std::string_view::npos) {
    out.sizes = ListAt(text.substr(sizes + kSizes.size()));
    end = std::min(end, sizes);
  }
  out.name = text.substr(0, end);
  return out;
}

bool IsLibraryRange(std::string_view text) {
  static constexpr std::array<std::string_view, 10> kFronts = {"nccl",     "MPI_",     "nvshmem", "cublas", "cudnn",
                                                               "cusparse", "cusolver", "cufft",   "cub::",  "thrust::"};
  return std::any_of(kFronts.begin(), kFronts.end(), [text](auto front) { return text.starts_with(front); });
}

std::string_view WithoutVersion(std::string_view name) {
  size_t digits = 0;
  while (digits < name.size() && IsDigit(name[name.size() - 1 - digits])) ++digits;
  const size_t front = name.size() - digits;
  const bool version = digits >= kVersionDigits && front > 2 && name.substr(front - 2, 2) == "_v";
  return version ? name.substr(0, front - 2) : name;
}

}  // namespace teller::ingest::nsys
