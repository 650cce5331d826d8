#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

namespace teller::tpe {

/// Threads that stay for many short jobs: starting new ones for each of thousands of merges would cost more than the
/// work.
class Crew {
 public:
  /// Calls `body(crew)` with `threads` - 1 helpers at hand. Exceptions of body and jobs come out here.
  static void Gather(unsigned threads, const std::function<void(Crew&)>& body);

  unsigned threads() const { return threads_; }
  /// Runs `job(worker)` once for each worker below `threads` and waits. Called by the body only.
  void Run(const std::function<void(unsigned)>& job);

 private:
  explicit Crew(unsigned threads) : threads_(threads) {}
  void Serve(unsigned worker);
  void Stop();
  void Guarded(unsigned worker);

  const unsigned threads_;
  const std::function<void(unsigned)>* job_ = nullptr;
  std::atomic<uint32_t> round_ = 0;  // grows by one for each job; job_ is set before
  std::atomic<uint32_t> working_ = 0;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace teller::tpe
