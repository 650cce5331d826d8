#include "tpe/crew.hpp"

#include <utility>

#include "base/parallel.hpp"

namespace teller::tpe {

void Crew::Gather(unsigned threads, const std::function<void(Crew&)>& body) {
  Crew crew(threads);
  base::RunWorkers(threads, [&](unsigned worker) {
    if (worker != 0) return crew.Serve(worker);
    try {
      body(crew);
    } catch (...) {
      crew.Stop();
      throw;
    }
    crew.Stop();
  });
}

void Crew::Guarded(unsigned worker) {
  try {
    (*job_)(worker);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void Crew::Run(const std::function<void(unsigned)>& job) {
  if (threads_ == 1) return job(0);
  job_ = &job;
  working_.store(threads_ - 1);
  round_.fetch_add(1);
  round_.notify_all();
  Guarded(0);
  for (uint32_t left = working_.load(); left != 0; left = working_.load()) working_.wait(left);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Crew::Stop() {
  job_ = nullptr;
  round_.fetch_add(1);
  round_.notify_all();
}

void Crew::Serve(unsigned worker) {
  for (uint32_t seen = 0;; ++seen) {
    round_.wait(seen);
    if (job_ == nullptr) return;
    Guarded(worker);
    if (working_.fetch_sub(1) == 1) working_.notify_one();
  }
}

}  // namespace teller::tpe
