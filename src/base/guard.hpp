#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/status.hpp"

namespace teller::base {

/// How guarded work ended.
struct GuardedEnd {
  int status = 0;            ///< what the work returned, unless a signal ended it
  int signal = 0;            ///< that ended it; 0 = none
  bool interrupted = false;  ///< by SIGINT, SIGTERM or SIGHUP to this process or to the work
};

/// Runs `work` in a process of its own and waits for it. When that process ends, in whatever way, or when this one does
/// (SIGKILL too), every process that it started, or that one of these started, is ended, also in a session of its own,
/// and every folder of GuardFolder that still has its name is removed; all of this is done when the call returns. The
/// calling process must have one thread. What the work throws is thrown in its own process. Errors: kUnreadable (no
/// process or pipe).
Result<GuardedEnd> RunGuarded(const std::function<int()>& work);

/// For guarded work; elsewhere it does nothing. Call before making the folder.
void GuardFolder(const std::string& path);

/// Takes GuardFolder back: the folder could not be made, so one of that name is somebody else's.
void LeaveFolder(const std::string& path);

/// As fork(), for a child in a process group of its own that ends with this process: by the guard where there is one,
/// else by the kernel, which knows only the child itself. The kernel ends the child already when the thread ends that
/// forked it: call from a thread that stays until the child has been waited for.
pid_t StartGuarded();

/// To be called when the child has been waited for: ends what is left of its group.
void EndGuarded(pid_t child);

}  // namespace teller::base
