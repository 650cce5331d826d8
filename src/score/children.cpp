#include "score/children.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>

#include "base/guard.hpp"
#include "base/parallel.hpp"

namespace teller::score {

namespace {

constexpr int kThrew = 3;

base::Error NoProcess(const char* what) {
  return {.code = base::Code::kUnreadable,
          .message = fmt::format("no process can be {}: {}", what, std::strerror(errno))};
}

[[noreturn]] void Child(size_t i, const ChildLimits& limits, const std::function<int(size_t)>& work) {
  if (limits.timeout_s > 0) alarm(limits.timeout_s);
  if (limits.memory > 0) {
    const rlimit limit{.rlim_cur = limits.memory, .rlim_max = limits.memory};
    setrlimit(RLIMIT_AS, &limit);
  }
  // Nothing may unwind into the frames of the parent: they would clean up what is the parent's.
  int status = kThrew;
  try {
    status = work(i);
  } catch (...) {
    // Said by the status.
  }
  _exit(status);
}

}  // namespace

base::Result<std::vector<int>> InChildren(size_t count, const ChildLimits& limits,
                                          const std::function<int(size_t)>& work) {
  std::vector<int> statuses(count, 0);
  std::map<pid_t, size_t> running;
  const unsigned workers = base::ThreadCount(limits.workers);
  size_t next = 0;
  while (next < count || !running.empty()) {
    if (next < count && running.size() < workers) {
      const pid_t child = base::StartGuarded();
      if (child == 0) Child(next, limits, work);
      if (child > 0) {
        running[child] = next++;
        continue;
      }
      if (running.empty()) return NoProcess("started");
    }
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended < 0 && errno != EINTR) return NoProcess("waited for");
    const auto it = running.find(ended);
    if (it == running.end()) continue;
    base::EndGuarded(ended);
    statuses[it->second] = status;
    running.erase(it);
  }
  return statuses;
}

std::string EndText(int status, const ChildLimits& limits) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return fmt::format("took longer than {} s", limits.timeout_s);
  if (WIFSIGNALED(status)) return fmt::format("died of signal {}", WTERMSIG(status));
  if (WEXITSTATUS(status) == kThrew) return "not enough memory, or a failure that it did not expect";
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace teller::score
