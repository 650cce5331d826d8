#include "base/guard.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
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
  // In one piece, so that who is killed has said all of it or nothing.
  WriteAll(g_guard, whole.data(), whole.size());
}

void TellOfFolder(Word word, const std::string& path) {
  std::error_code error;
  const std::string whole = fs::absolute(path, error).string();
  if (!error) Tell(word, static_cast<uint32_t>(whole.size()), whole);
}

/// What came of the work, told by the guard when everything is cleaned up.
struct Report {
  int error = 0;   ///< why the work could not be started; 0 = it was
  int status = 0;  ///< as waitpid gives it
};

/// Collects those children that have ended, and the worker's status; true while there are others.
bool Collect(pid_t worker, int& status) {
  for (;;) {
    int end = 0;
    const pid_t ended = waitpid(-1, &end, WNOHANG);
    if (ended < 0 && errno == EINTR) continue;
    if (ended <= 0) return ended == 0;
    if (ended == worker) status = end;
  }
}

/// Ends the children of this process; theirs then are its own, which the next call ends.
void KillChildren() {
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), last; !error && it != last; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string line;
    std::getline(std::ifstream(it->path() / "stat"), line);
    const size_t behind_name = line.rfind(") ");  // "PID (NAME) STATE PARENT ..."
    if (behind_name == std::string::npos || behind_name + 4 >= line.size()) continue;
    if (std::atoi(line.c_str() + behind_name + 4) == getpid()) kill(std::atoi(name.c_str()), SIGKILL);
  }
}

constexpr int kTries = 100;            // to end and remove what may still be busy
constexpr useconds_t kPause = 20'000;  // us between them

/// What the work has started and what is to be removed when it is gone.
struct Guarded {
  std::set<pid_t> groups;
  std::set<std::string> folders;

  /// Takes one message; false when there will be none any more.
  bool Hear(int words) {
    Message message;
    if (!ReadAll(words, &message, sizeof message)) return false;
    if (message.word == Word::kStarted) groups.insert(static_cast<pid_t>(message.value));
    if (message.word == Word::kEnded) groups.erase(static_cast<pid_t>(message.value));
    if (message.word != Word::kFolder && message.word != Word::kNoFolder) return true;
    std::string name(message.value, '\0');
    if (!ReadAll(words, name.data(), name.size())) return false;
    if (message.word == Word::kFolder) folders.insert(std::move(name));
    if (message.word == Word::kNoFolder) folders.erase(name);
    return true;
  }

  /// Ends all that descends from this process, whatever groups and sessions it made.
  void End(pid_t worker, int& status) const {
    for (const pid_t group : groups) kill(-group, SIGKILL);
    for (int i = 0; i < kTries && Collect(worker, status); ++i) {
      KillChildren();
      if (!Collect(worker, status)) break;
      usleep(i < 10 ? 1'000 : kPause);
    }
  }

  bool RemoveFolders() const {
    bool all = true;
    for (const std::string& folder : folders) {
      std::error_code error;
      fs::remove_all(folder, error);
      all &= !error;
    }
    return all;
  }
};

/// The guard: the worker's parent. Listens until the worker is gone, or ends it when `life` closes, then cleans up.
[[noreturn]] void Serve(pid_t worker, int words, int life, int report) {
  // Not of the session that a terminal or a supervisor ends, and no reader of the work's output waits for it.
  setsid();
  for (const int number : kInterrupts) std::signal(number, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);  // there may be nobody to report to
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, fd);
  Guarded guarded;
  Report end;
  constexpr int kCollectEvery = 1'000;  // ms; orphans of the work that have ended
  std::array<pollfd, 2> ends{pollfd{.fd = words, .events = POLLIN, .revents = 0},
                             pollfd{.fd = life, .events = POLLIN, .revents = 0}};
  for (bool more = true; more;) {
    const int ready = poll(ends.data(), ends.size(), kCollectEvery);
    Collect(worker, end.status);
    if (ready <= 0) continue;
    if (ends[1].revents != 0) {
      kill(worker, SIGKILL);
      ends[1].fd = -1;
    }
    if (ends[0].revents != 0) more = guarded.Hear(words);
  }
  guarded.End(worker, end.status);
  // Who is dying may write yet.
  for (int i = 0; i < kTries && !guarded.RemoveFolders(); ++i) usleep(kPause);
  WriteAll(report, &end, sizeof end);
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

void Wait(pid_t child) {
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Error NoProcess(int why) {
  return {.code = Code::kUnreadable, .message = std::string("no process can be started: ") + std::strerror(why)};
}

/// Waits for the guard or for a signal, upon which the guard ends the work (`life` closes).
Result<GuardedEnd> WaitFor(pid_t guard, int life, int report, const sigset_t& signals) {
  GuardedEnd end;
  int status = 0;
  for (bool ended = false; !ended;) {
    const int number = sigwaitinfo(&signals, nullptr);
    if (number < 0) continue;
    if (number != SIGCHLD) {
      end.interrupted = true;
      end.signal = number;
      break;
    }
    const pid_t known = waitpid(guard, &status, WNOHANG);
    ended = known == guard || (known < 0 && errno != EINTR);  // somebody else may have collected it
  }
  close(life);
  if (end.interrupted) {
    Wait(guard);
    return end;
  }
  Report said;
  if (!ReadAll(report, &said, sizeof said)) {
    if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
    end.status = 1;
    return end;
  }
  if (said.error != 0) return NoProcess(said.error);
  if (WIFEXITED(said.status)) end.status = WEXITSTATUS(said.status);
  if (WIFSIGNALED(said.status)) end.signal = WTERMSIG(said.status);
  for (const int number : kInterrupts) end.interrupted |= end.signal == number;
  return end;
}

/// Goes with this parent, also when it has gone meanwhile.
void EndWith(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

}  // namespace

Result<GuardedEnd> RunGuarded(const std::function<int()>& work) {
  std::array<int, 2> words{};   // from the work to the guard
  std::array<int, 2> life{};    // closes when this process has gone or wants the end
  std::array<int, 2> report{};  // from the guard to this process
  std::array<std::array<int, 2>*, 3> pipes{&words, &life, &report};
  for (size_t i = 0; i < pipes.size(); ++i) {
    if (pipe2(pipes[i]->data(), O_CLOEXEC) == 0) continue;
    const int why = errno;
    for (size_t k = 0; k < i; ++k) {
      for (const int fd : *pipes[k]) close(fd);
    }
    return NoProcess(why);
  }
  // Inherited as ignored (`trap '' CHLD`) it would neither come nor leave a status, here, in the guard and in the work.
  struct sigaction usual {};
  struct sigaction inherited {};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &usual, &inherited);
  sigset_t before;
  sigset_t signals = Interrupts();
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t guard = fork();
  if (guard == 0) {
    close(life[1]);
    close(report[0]);
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // what the work leaves behind becomes a child of the guard
    const pid_t self = getpid();
    const pid_t worker = fork();
    if (worker == 0) {
      EndWith(self);
      for (const int fd : {words[0], life[0], report[1]}) close(fd);
      sigprocmask(SIG_SETMASK, &before, nullptr);
      g_guard = words[1];
      _exit(work());
    }
    if (worker < 0) {
      const Report failed{.error = errno};
      WriteAll(report[1], &failed, sizeof failed);
      _exit(1);
    }
    close(words[1]);
    Serve(worker, words[0], life[0], report[1]);
  }
  const int why = errno;
  for (const int fd : {words[0], words[1], life[0], report[1]}) close(fd);
  Result<GuardedEnd> end = NoProcess(why);
  if (guard > 0) {
    end = WaitFor(guard, life[1], report[0], signals);
  } else {
    close(life[1]);
  }
  close(report[0]);
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
