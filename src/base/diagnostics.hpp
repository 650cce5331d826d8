#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.hpp"

namespace teller::base {

struct FileTag;
/// An input file of a run: index into trace::Store::files and `input.files` of the verdict.
using FileRow = Id<FileTag>;

/// How much a diagnostic matters. kDataLoss and kError make the program exit with 3.
enum class Severity : uint8_t { kInfo = 0, kNotice = 1, kDataLoss = 2, kError = 3 };

std::string_view Name(Severity severity);

/// A kind of observation about bad or doubtful input, declared once as a constant beside the reader that reports it.
struct DiagnosticKind {
  std::string_view code;  ///< stable dotted name such as "trace.truncated"
  Severity severity;
  std::string_view text;  ///< what it means and what to do, one sentence
};

/// All reports of one kind in one file.
struct Diagnostic {
  const DiagnosticKind* kind = nullptr;
  FileRow file;               ///< none when it concerns no single file
  uint64_t count = 0;         ///< exact
  std::vector<std::string> places;  ///< the first few, such as "byte 812: \"dur\" is \"abc\""
};

/// Counted, located observations about the input. Threads: confined; give each worker one and Merge them in input order.
class Diagnostics {
 public:
  /// Counts `count` observations; the place is kept for the first few of a kind and file.
  void Report(const DiagnosticKind& kind, FileRow file, std::string place, uint64_t count = 1);
  /// Adds all of `other` after the ones here.
  void Merge(const Diagnostics& other);
  /// Order: by file (none first), then code.
  std::vector<Diagnostic> All() const;
  uint64_t Count(std::string_view code) const;
  /// True when some input was lost or wrong, so that the exit status is 3.
  bool LostInput() const;

 private:
  std::map<std::pair<uint32_t, std::string_view>, Diagnostic> rows_;  // key: file row + 1 (0 = none), code
};

}  // namespace teller::base
