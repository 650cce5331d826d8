#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace teller::ingest::log {

/// Bytes kept of the end of a line that is cut: engines write what they know of a request behind its text.
inline constexpr size_t kSegmentTail = 8u << 10;

/// A piece of a log between line ends. A carriage return inside a line ends a piece too: that is how progress bars
/// redraw themselves.
struct Segment {
  std::string_view text;   ///< without line end; valid during the call only
  uint32_t line = 1;       ///< physical line (counted by \n), from 1
  uint64_t cut = 0;        ///< bytes beyond the limit that were dropped
  std::string_view tail;   ///< the last bytes of a line that was cut, at least kSegmentTail; else empty
  bool same_line = false;  ///< not the first segment of its physical line
};

/// Cuts a byte stream into segments in bounded memory, whatever the line length. Threads: confined.
class LineSplitter {
 public:
  using Sink = std::function<void(const Segment&)>;
  LineSplitter(size_t max_bytes, Sink sink) : max_bytes_(max_bytes), sink_(std::move(sink)) {}

  void Feed(std::string_view bytes);
  /// The last line when it has no line end.
  void Finish();
  uint32_t lines() const { return line_; }

 private:
  void Keep(std::string_view part);
  void End(bool newline);

  size_t max_bytes_;
  Sink sink_;
  std::string text_;
  std::string tail_;
  uint64_t cut_ = 0;
  uint32_t line_ = 1;
  bool same_line_ = false;
  bool any_ = false;         // something was seen since the last line end
  bool pending_cr_ = false;  // a carriage return whose meaning the next byte decides
};

/// Copies `text` to `out` without terminal escape sequences; NUL bytes become spaces.
void StripEscapes(std::string_view text, std::string& out);
/// Number of bytes that are no part of well-formed UTF-8.
uint64_t InvalidUtf8(std::string_view text);

}  // namespace teller::ingest::log
