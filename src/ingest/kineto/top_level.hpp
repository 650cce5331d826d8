#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace teller::ingest {

/// Reads what stands around the event array of a Chrome trace, character by character, in any order and of any size;
/// keeps the values that a reader needs. Threads: confined.
class TopLevelScanner {
 public:
  enum class Stop : uint8_t {
    kNeedMore,  ///< all text is consumed
    kEvents,    ///< the text goes on with the first element of an event array
    kEnd,       ///< the document is complete; what follows is not part of it
    kBroken,    ///< not JSON
  };

  /// Consumes from the front of `text`. After kEvents, call EventsClosed() once the closing bracket was consumed.
  Stop Feed(std::string_view& text);
  void EventsClosed() { state_ = bare_array_ ? State::kDone : State::kAfterValue; }

  bool bare_array() const { return bare_array_; }
  bool saw_events() const { return saw_events_; }
  /// True once the document's closing bracket was read.
  bool complete() const { return state_ == State::kDone; }
  /// JSON text of the kept keys: distributedInfo, baseTimeNanoseconds and other scalars of up to 1 kB.
  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  enum class State : uint8_t { kStart, kKey, kInKey, kColon, kValue, kInValue, kAfterValue, kDone, kBroken };

  Stop FeedChar(char c);
  Stop BeginValue(char c);
  void ContinueValue(char c);
  void Keep(char c);

  State state_ = State::kStart;
  bool bare_array_ = false;
  bool saw_events_ = false;
  bool in_string_ = false;
  bool escaped_ = false;
  int64_t depth_ = 0;
  size_t skip_bom_ = 0;
  std::string key_;
  std::string value_;
  bool keep_ = false;
  std::map<std::string, std::string> values_;
};

}  // namespace teller::ingest
