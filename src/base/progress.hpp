#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace teller::base {

/// Where long work tells how far it is. Threads: synchronized; implementations must be callable from any worker.
class Progress {
 public:
  virtual ~Progress() = default;
  /// `done` of `total` units (bytes for reading) of the stage; total 0 = unknown.
  virtual void Update(std::string_view stage, uint64_t done, uint64_t total) = 0;
  /// True when the user asked to stop; long loops return Code::kCancelled soon after.
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_ = false;
};

}  // namespace teller::base
