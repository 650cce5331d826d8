#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/byte_source.hpp"
#include "base/limits.hpp"
#include "base/memory.hpp"
#include "ingest/kineto/splitter.hpp"
#include "ingest/kineto/top_level.hpp"

namespace teller::ingest {

/// Room that a JSON parser may read (not use) behind a text.
inline constexpr size_t kParserPadding = 64;

/// Some whole elements of a trace's event array, wrapped in brackets as a JSON array of their own.
struct Window {
  base::PageBuffer buffer;  ///< reused from window to window; padded
  size_t size = 0;          ///< bytes of "[...]"
  uint64_t offset = 0;      ///< position of the first element in the (decompressed) file
  uint32_t index = 0;       ///< ordinal in the file
  bool deep = false;        ///< an element may be nested deeper than the limit

  std::string_view text() const { return {buffer.data(), size}; }
};

/// Cuts one trace file into windows. Windows depend on the bytes alone, never on timing or thread count.
/// Threads: confined; callers take turns under a lock.
class WindowReader {
 public:
  /// What was wrong around the events; valid after the last window.
  struct Outcome {
    bool no_events = false;    ///< no event array was found
    bool broken_top = false;   ///< text around the events is no JSON
    bool unclosed = false;     ///< the array was not closed, all elements are whole
    bool cut_event = false;    ///< the last element is cut off
    uint64_t cut_at = 0;       ///< where it begins
    uint64_t oversize = 0;     ///< elements longer than the limit, skipped
    uint64_t oversize_at = 0;  ///< where the first of them begins
    bool trailing = false;     ///< something stands behind the end of the document
    std::string damage;        ///< the compressed data's, or empty
    uint64_t bytes = 0;        ///< decompressed bytes read
  };

  WindowReader(std::unique_ptr<base::ByteSource> source, const base::Limits& limits);

  /// Fills the next window. Value false: the file is at its end.
  /// Errors: kUnreadable.
  base::Result<bool> Next(Window& window);

  const Outcome& outcome() const { return outcome_; }
  const TopLevelScanner& top() const { return top_; }
  uint64_t consumed() const { return source_->consumed(); }

 private:
  enum class Phase : uint8_t { kTop, kEvents, kEnd };

  base::Result<bool> ReadTop();
  base::Result<bool> ReadEvents(Window& window);
  /// Reads until the buffer holds `want` bytes of elements or the file ends. Returns the bytes held.
  base::Result<size_t> Fill(Window& window, size_t held, size_t want);
  bool Emit(Window& window, const Cut& cut, size_t held);
  base::Status Drain();
  void Finish(std::string_view leftover);
  bool SkipToElement(Window& window, size_t& held, size_t from);

  std::unique_ptr<base::ByteSource> source_;
  const base::Limits limits_;
  TopLevelScanner top_;
  Outcome outcome_;
  Phase phase_ = Phase::kTop;
  std::string pending_;      // bytes read and not yet handed out
  uint64_t pending_at_ = 0;  // their position in the file
  uint32_t windows_ = 0;
  bool at_end_ = false;
};

}  // namespace teller::ingest
