#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "report/sink.hpp"

namespace teller::report {

/// Writes one JSON object member by member, with the bytes that JsonText gives for the whole: what an array of a
/// million records needs is one record. Keep what fails: after an error nothing more is written. Threads: confined.
class JsonObjectStream {
 public:
  explicit JsonObjectStream(const Sink& sink) : sink_(sink) {}

  void Field(std::string_view key, const nlohmann::ordered_json& value);
  /// Members of an array: BeginArray, Item as often as there are some, EndArray.
  void BeginArray(std::string_view key);
  void Item(const nlohmann::ordered_json& value);
  void EndArray();
  /// Ends the object. Errors: the first one of the sink.
  base::Status End();
  /// False once the sink refused: the rest need not be made.
  bool ok() const { return status_.ok(); }

 private:
  void Key(std::string_view key);
  void Value(const nlohmann::ordered_json& value, int depth);
  void Flush(size_t above);

  const Sink& sink_;
  base::Status status_;
  std::string buffer_ = "{";
  bool first_ = true;
  bool first_item_ = true;
};

}  // namespace teller::report
