#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "report/sink.hpp"

namespace teller::report {

/// Output in pieces: text is collected and handed to a sink as soon as there is enough, so that what is long is never
/// there as a whole. After an error of the sink nothing more is written. Lifetime: the sink outlives it. Threads:
/// confined.
class Chunks {
 public:
  explicit Chunks(const Sink& sink) : sink_(sink) {}

  void Add(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= kBytes) Flush();
  }
  /// Hands on what is left. Errors: the first one of the sink.
  base::Status End() {
    Flush();
    return std::exchange(status_, {});
  }
  /// False once the sink refused: the rest need not be made.
  bool ok() const { return status_.ok(); }

 private:
  static constexpr size_t kBytes = size_t{1} << 16;

  void Flush() {
    if (status_.ok() && !buffer_.empty()) status_ = sink_(buffer_);
    buffer_.clear();
  }

  const Sink& sink_;
  base::Status status_;
  std::string buffer_;
};

/// A member of a JSON object after its first: a list of `count` values, `value(i)` the text of one.
template <class Value>
void AddColumn(Chunks& out, std::string_view key, size_t count, const Value& value) {
  out.Add(",\"");
  out.Add(key);
  out.Add("\":[");
  for (size_t i = 0; i < count && out.ok(); ++i) {
    if (i > 0) out.Add(",");
    out.Add(value(i));
  }
  out.Add("]");
}

}  // namespace teller::report
