#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.hpp"
#include "base/string_pool.hpp"
#include "trace/types.hpp"

namespace teller::ingest {

/// Interned texts of one worker, and for the current block which of them it uses, in order of first use: from these
/// lists the store's numbering is made, so that it does not depend on which worker read which window.
class BlockPool {
 public:
  /// Starts the list of a new block.
  void BeginBlock() {
    ++epoch_;
    used_.clear();
  }
  uint32_t Intern(std::string_view text) {
    const uint32_t id = pool_.Intern(text).value();
    Use(id);
    return id;
  }
  /// Marks a text as used by the current block.
  void Use(uint32_t id) {
    if (id >= seen_.size()) seen_.resize(pool_.size() * 2, 0);
    if (seen_[id] == epoch_) return;
    seen_[id] = epoch_;
    used_.push_back(id);
  }
  const std::vector<uint32_t>& used() const { return used_; }
  std::string_view Text(uint32_t id) const { return pool_.Text(base::StringId(id)); }
  size_t size() const { return pool_.size(); }

 private:
  base::StringPool pool_;
  std::vector<uint32_t> seen_;  // epoch of the last block that used the text
  std::vector<uint32_t> used_;
  uint32_t epoch_ = 0;
};

/// Text that stands for a lane in a BlockPool: pid, tid, and whether it is a device's lane.
struct LaneKey {
  std::string_view pid;
  std::string_view tid;
  bool device = false;

  static std::string Pack(std::string_view pid, std::string_view tid, bool device);
  static LaneKey Unpack(std::string_view packed);
};

/// What one worker keeps from window to window. Threads: confined while reading, then read only.
struct Worker {
  BlockPool strings;
  BlockPool lanes;
  BlockPool categories;
  std::vector<trace::SpanKind> kinds;  ///< of each category text
  base::ChunkArena arena;
};

}  // namespace teller::ingest
