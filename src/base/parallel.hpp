#pragma once

#include <cstddef>
#include <functional>

namespace teller::base {

/// Number of threads to use: `wanted`, or one per core when it is 0. At least 1.
unsigned ThreadCount(unsigned wanted);

/// Runs `work(worker)` once for each worker below `threads` (the caller is worker 0) and waits for all.
/// An exception of a worker (out of memory) is thrown again here, after all have stopped.
void RunWorkers(unsigned threads, const std::function<void(unsigned)>& work);

/// Calls `work(index)` once for every index below `count`, in increasing order of start, spread over `threads` threads.
void ParallelFor(unsigned threads, size_t count, const std::function<void(size_t)>& work);

}  // namespace teller::base
