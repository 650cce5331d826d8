#include "base/guard.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>
#include <vector>

namespace teller::base {

namespace fs = std::filesystem;

namespace {

constexpr std::array<int, 3> kInterrupts = {SIGINT, SIGTERM, SIGHUP};

/// The pipe to the guard; -1 where nothing is guarded.
int g_guard = -1;

enum class Word : uint8_t { kStarted, kEnded, kFolder, kNoFolder };

/// What a guard is told; the bytes of a folder's name follow.
struct Message {
  Word word = Word::kStarted;
  uint32_t value = 0;  ///< a process, or the length of a name
};

bool WriteAll(int fd, const void* data, size_t size) {
  for (const char* at = static_cast<const char*>(data); size > 0;) {
    const ssize_t n = write(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool ReadAll(int fd, void* data, size_t size) {
  for (char* at = static_cast<char*>(data); size > 0;) {
    const ssize_t n = read(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

void Tell(Word word, uint32_t value, std::string_view name = {}) {
  if (g_guard < 0) return;
  const Message message{.word = word, .value = value};
  std::string whole(sizeof message, '\0');
  std::memcpy(whole.data(), &message, sizeof message);
  whole += name;
  // In one piece, so that who is killed has said all of it or nothing. A guard that is gone leaves the work unguarded,
  // which is no reason to stop it.
  WriteAll(g_guard, whole.data(), whole.size());
}

void TellOfFolder(Word word, const std::string& path) {
  std::error_code error;
  const std::string whole = fs::absolute(path, error).string();
  if (!error) Tell(word, static_cast<uint32_t>(whole.size()), whole);
}

void KillAll(const std::set<pid_t>& groups) {
  for (const pid_t group : groups) kill(-group, SIGKILL);
}

/// The guard: listens until all who could tell it something are gone, then cleans up.
[[noreturn]] void Serve(int pipe) {
  // Not of the session that a terminal or a supervisor ends, and no reader of the work's output waits for it.
  setsid();
  for (const int number : kInterrupts) std::signal(number, SIG_IGN);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, fd);
  std::set<pid_t> groups;
  std::set<std::string> folders;
  for (Message message; ReadAll(pipe, &message, sizeof message);) {
    if (message.word == Word::kStarted) groups.insert(static_cast<pid_t>(message.value));
    if (message.word == Word::kEnded) groups.erase(static_cast<pid_t>(message.value));
    if (message.word != Word::kFolder && message.word != Word::kNoFolder) continue;
    std::string name(message.value, '\0');
    if (!ReadAll(pipe, name.data(), name.size())) break;
    if (message.word == Word::kFolder) folders.insert(std::move(name));
    if (message.word == Word::kNoFolder) folders.erase(name);
  }
  KillAll(groups);
  // Who is dying may write yet.
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    bool left = false;
    for (const std::string& folder : folders) {
      std::error_code error;
      fs::remove_all(folder, error);
      left |= static_cast<bool>(error);
    }
    if (!left) break;
    KillAll(groups);
    usleep(20'000);
  }
  _exit(0);
}

/// Those signals that are not ignored: what `nohup` took away stays away.
sigset_t Interrupts() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kInterrupts) {
    struct sigaction known {};
    sigaction(number, nullptr, &known);
    if (known.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  return set;
}

int Wait(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// Waits for the work or for a signal, upon which the work is ended.
GuardedEnd WaitFor(pid_t worker, const sigset_t& signals) {
  GuardedEnd end;
  int status = 0;
  for (;;) {
    const int number = sigwaitinfo(&signals, nullptr);
    if (number < 0) continue;
    if (number != SIGCHLD) {
      end.interrupted = true;
      end.signal = number;
      kill(worker, SIGKILL);
      kill(worker, SIGCONT);
      Wait(worker);
      return end;
    }
    const pid_t ended = waitpid(worker, &status, WNOHANG);
    if (ended == worker) break;
    if (ended < 0 && errno != EINTR) {  // somebody else has collected it
      end.status = 1;
      return end;
    }
  }
  if (WIFEXITED(status)) end.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  for (const int number : kInterrupts) end.interrupted |= end.signal == number;
  return end;
}

/// Goes with this parent, also when it has gone meanwhile.
void EndWith(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

Error NoProcess() {
  return {.code = Code::kUnreadable, .message = std::string("no process can be started: ") + std::strerror(errno)};
}

}  // namespace

Result<GuardedEnd> RunGuarded(const std::function<int()>& work) {
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) return NoProcess();
  // Inherited as ignored (`trap '' CHLD`) it would neither come nor leave a status, here and in the work.
  struct sigaction usual {};
  struct sigaction inherited {};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &usual, &inherited);
  const pid_t self = getpid();
  const pid_t guard = fork();
  if (guard == 0) {
    close(pipe[1]);
    Serve(pipe[0]);
  }
  close(pipe[0]);
  sigset_t before;
  sigset_t signals = Interrupts();
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t worker = guard < 0 ? -1 : fork();
  if (worker == 0) {
    EndWith(self);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    g_guard = pipe[1];
    _exit(work());
  }
  Result<GuardedEnd> end = worker < 0 ? Result<GuardedEnd>(NoProcess()) : WaitFor(worker, signals);
  close(pipe[1]);
  if (guard > 0) Wait(guard);
  sigaction(SIGCHLD, &inherited, nullptr);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return end;
}

void GuardFolder(const std::string& path) {
  TellOfFolder(Word::kFolder, path);
}

void LeaveFolder(const std::string& path) {
  TellOfFolder(Word::kNoFolder, path);
}

pid_t StartGuarded() {
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child > 0) {
    setpgid(child, child);
    Tell(Word::kStarted, static_cast<uint32_t>(child));
  }
  if (child != 0) return child;
  setpgid(0, 0);
  EndWith(self);
  if (g_guard >= 0) close(g_guard);
  g_guard = -1;
  return 0;
}

void EndGuarded(pid_t child) {
  kill(-child, SIGKILL);
  Tell(Word::kEnded, static_cast<uint32_t>(child));
}

}  // namespace teller::base
