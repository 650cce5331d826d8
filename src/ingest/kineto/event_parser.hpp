#pragma once

#include <memory>
#include <string_view>

#include "base/limits.hpp"
#include "ingest/common/block.hpp"
#include "ingest/common/worker.hpp"
#include "ingest/kineto/window_reader.hpp"

namespace teller::ingest {

/// Turns windows into blocks. One per worker. Threads: confined.
class EventParser {
 public:
  EventParser(Worker& worker, uint32_t worker_index, const base::Limits& limits);
  ~EventParser();

  /// Parses every element of the window; bad ones become diagnostics of `file`.
  std::unique_ptr<Block> Parse(const Window& window, trace::FileRow file);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace teller::ingest
