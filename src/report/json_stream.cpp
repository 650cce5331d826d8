#include "report/json_stream.hpp"

namespace teller::report {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFlushBytes = 1u << 16;
constexpr int kIndent = 2;

}  // namespace

void JsonObjectStream::Field(std::string_view key, const Json& value) {
  Key(key);
  Value(value, 1);
  Flush(kFlushBytes);
}

void JsonObjectStream::BeginArray(std::string_view key) {
  Key(key);
  buffer_ += '[';
  first_item_ = true;
}

void JsonObjectStream::Item(const Json& value) {
  buffer_ += first_item_ ? "\n" : ",\n";
  first_item_ = false;
  buffer_.append(2 * kIndent, ' ');
  Value(value, 2);
  Flush(kFlushBytes);
}

void JsonObjectStream::EndArray() {
  if (!first_item_) buffer_.append("\n").append(kIndent, ' ');
  buffer_ += ']';
}

base::Status JsonObjectStream::End() {
  buffer_ += first_ ? "}\n" : "\n}\n";
  Flush(0);
  return status_;
}

void JsonObjectStream::Key(std::string_view key) {
  buffer_ += first_ ? "\n" : ",\n";
  first_ = false;
  buffer_.append(kIndent, ' ');
  buffer_ += Json(std::string(key)).dump(-1, ' ', true) + ": ";
}

/// Line breaks of the dump stand between values only: inside of strings they are escaped.
void JsonObjectStream::Value(const Json& value, int depth) {
  const std::string text = value.dump(kIndent, ' ', true, Json::error_handler_t::replace);
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) {
      buffer_.append(text, at);
      break;
    }
    buffer_.append(text, at, end + 1 - at).append(static_cast<size_t>(depth * kIndent), ' ');
    at = end + 1;
  }
}

void JsonObjectStream::Flush(size_t above) {
  if (buffer_.size() <= above) return;
  if (status_.ok()) status_ = sink_(buffer_);
  buffer_.clear();
}

}  // namespace teller::report
