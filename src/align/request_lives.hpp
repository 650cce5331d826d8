#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trace/store.hpp"

namespace teller::align {

/// Tells apart requests to which a llama.cpp server gave one number: it counts its tasks from 0 again when it is
/// started again. A new request of a number begins
/// - with the line that a task begins ("processing task"), where the number began or ended before;
/// - with the timings of a task, where the number's request has stated its own;
/// - with any line that follows the end of the number's request (its timings) by more than a minute, or the number's
/// last
///   line by more than an hour.
class RequestLives {
 public:
  explicit RequestLives(const trace::Store& store);

  /// Which request of its number a line of its file is about, from 0. `scope` and `id` as RequestIds knows them.
  uint32_t Of(std::string_view scope, std::string_view id, uint32_t line) const;

  /// Scope of an id that only one process counts; empty for ids that are unique in the run.
  static std::string Scope(std::string_view id, trace::FileRow file, const std::string& process);
  /// Line of a place such as "line:412"; 0 for others.
  static uint32_t LineOf(std::string_view ref);

 private:
  std::map<std::string, std::vector<uint32_t>, std::less<>>
      begins_;  // scope and id -> first lines of the second life on
};

}  // namespace teller::align
