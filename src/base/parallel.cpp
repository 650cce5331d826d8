#include "base/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace teller::base {

unsigned ThreadCount(unsigned wanted) {
  return wanted > 0 ? wanted : std::max(1u, std::thread::hardware_concurrency());
}

void RunWorkers(unsigned threads, const std::function<void(unsigned)>& work) {
  if (threads <= 1) {
    work(0);
    return;
  }
  std::mutex mutex;
  std::exception_ptr failure;
  const auto guarded = [&](unsigned worker) {
    try {
      work(worker);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> pool;
    pool.reserve(threads - 1);
    for (unsigned i = 1; i < threads; ++i) pool.emplace_back(guarded, i);
    guarded(0);
  }
  if (failure) std::rethrow_exception(failure);
}

void ParallelFor(unsigned threads, size_t count, const std::function<void(size_t)>& work) {
  const auto workers = static_cast<unsigned>(std::min<size_t>(threads, count));
  std::atomic<size_t> next = 0;
  RunWorkers(std::max(1u, workers), [&](unsigned) {
    for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) work(i);
  });
}

}  // namespace teller::base
