#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace teller::ingest::otlp {

/// Cuts a stream of JSON into its top-level values: one document, JSON lines, or documents simply put together, on one
/// line or many. Elements of a top-level array count as documents.
/// Memory: the longest document, or `max_bytes`; a longer one is passed over and reported as such.
class DocumentSplitter {
 public:
  struct Document {
    std::string_view text;  ///< valid during the call only; empty when `too_long`
    uint64_t line = 1;      ///< on which it begins, from 1
    bool too_long = false;
    bool cut = false;    ///< the stream ends inside it, or another document begins on a line inside it
    bool stray = false;  ///< text that is no JSON object, up to the end of its line
  };
  using Sink = std::function<void(const Document&)>;
  DocumentSplitter(size_t max_bytes, Sink sink) : max_bytes_(max_bytes), sink_(std::move(sink)) {}

  void Feed(std::string_view bytes);
  void Finish();

 private:
  enum class State : uint8_t { kBetween, kInside, kStray };
  size_t Between(std::string_view bytes);
  size_t Inside(std::string_view bytes);
  void Keep(std::string_view part);
  void Emit(bool cut, bool stray);
  bool BeginsAnother(char c);

  size_t max_bytes_;
  Sink sink_;
  std::string text_;
  State state_ = State::kBetween;
  uint64_t line_ = 1;
  uint64_t begin_line_ = 1;
  uint64_t depth_ = 0;
  size_t head_ = 0;        ///< how much of the head of an export request this line began with
  size_t head_bytes_ = 0;  ///< the same in bytes of the stream
  bool quoted_ = false;
  bool escaped_ = false;
  bool too_long_ = false;
};

/// Closes a document that was cut off, behind the last span that is whole. Empty when it holds none.
std::string CloseCutDocument(std::string_view text);

}  // namespace teller::ingest::otlp
