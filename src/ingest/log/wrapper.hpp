#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/limits.hpp"
#include "ingest/log/parsed_line.hpp"

namespace teller::ingest::log {

/// Undoes what container runtimes and journals wrap around the lines of a program: the Kubernetes container format,
/// docker's json-file, journald's JSON. A runtime cuts long lines into pieces; they are joined again, each stream
/// (stdout, stderr) by itself. Threads: confined.
/// Source: docs/reference/log-grammars.md, section 1.
class Unwrapper {
 public:
  explicit Unwrapper(const base::Limits& limits) : limits_(limits) {}

  enum class Result {
    kPlain,  ///< the line is not wrapped
    kPiece,  ///< kept; the rest of its line comes later
    kWhole,  ///< `text()` is the line of the program; it may hold several, with \n between them
  };

  /// `origin` gets what the wrapper says: time, host, process, pid.
  Result Unwrap(std::string_view line, Origin& origin);
  std::string_view text() const { return text_; }
  /// Bytes that joined lines lost to the limit on a line's length since the last call.
  size_t TakeCut() { return std::exchange(cut_, 0); }
  /// A line whose end never came; false when there is none (any more).
  bool TakePiece(Origin& origin);

 private:
  struct Piece {
    std::string text;
    Origin origin;
  };

  Result Join(const std::string& stream, std::string_view part, bool last, Origin& origin);
  Result UnwrapJson(std::string_view line, Origin& origin);

  const base::Limits& limits_;
  std::map<std::string, Piece> pieces_;  // by stream
  std::string text_;
  size_t cut_ = 0;
};

}  // namespace teller::ingest::log
