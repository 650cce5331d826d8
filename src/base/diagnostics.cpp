#include "base/diagnostics.hpp"

namespace teller::base {

namespace {
constexpr size_t kPlacesKept = 5;  // enough to find the spot by hand, bounded for hostile input
}

std::string_view Name(Severity severity) {
  switch (severity) {
    case Severity::kInfo: return "info";
    case Severity::kNotice: return "notice";
    case Severity::kDataLoss: return "data-loss";
    case Severity::kError: return "error";
  }
  return "info";
}

void Diagnostics::Report(const DiagnosticKind& kind, FileRow file, std::string place, uint64_t count) {
  Diagnostic& row = rows_[{file.valid() ? file.value() + 1 : 0, kind.code}];
  row.kind = &kind;
  row.file = file;
  row.count += count;
  if (row.places.size() < kPlacesKept && !place.empty()) row.places.push_back(std::move(place));
}

void Diagnostics::Merge(const Diagnostics& other) {
  for (const auto& [key, theirs] : other.rows_) {
    Diagnostic& row = rows_[key];
    row.kind = theirs.kind;
    row.file = theirs.file;
    row.count += theirs.count;
    for (const auto& place : theirs.places) {
      if (row.places.size() < kPlacesKept) row.places.push_back(place);
    }
  }
}

std::vector<Diagnostic> Diagnostics::All() const {
  std::vector<Diagnostic> out;
  for (const auto& [key, row] : rows_) out.push_back(row);
  return out;
}

uint64_t Diagnostics::Count(std::string_view code) const {
  uint64_t total = 0;
  for (const auto& [key, row] : rows_) {
    if (key.second == code) total += row.count;
  }
  return total;
}

bool Diagnostics::LostInput() const {
  for (const auto& [key, row] : rows_) {
    if (row.kind->severity >= Severity::kDataLoss) return true;
  }
  return false;
}

}  // namespace teller::base
