#include "cli/terminal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

namespace teller::cli {

namespace {

constexpr size_t kDefaultWidth = 80;
constexpr size_t kNarrowest = 40;
/// Longer lines are hard to read.
constexpr size_t kWidest = 200;

class NoProgress : public base::Progress {
 public:
  void Update(std::string_view, uint64_t, uint64_t) override {}
};

class TerminalProgress : public base::Progress {
 public:
  ~TerminalProgress() override {
    if (shown_) Show("\r\x1b[K");
  }

  void Update(std::string_view stage, uint64_t done, uint64_t total) override {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    const auto now = Clock::now();
    if (now - start_ < kQuietTime || now - last_ < kPause) return;
    last_ = now;
    shown_ = true;
    const std::string part =
        total == 0
            ? ""
            : fmt::format(" {:3.0f} %", 100 * static_cast<double>(std::min(done, total)) / static_cast<double>(total));
    Show(fmt::format("\r\x1b[K{}{}", stage, part));
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kQuietTime{500};
  static constexpr std::chrono::milliseconds kPause{100};

  static void Show(std::string_view text) {
    // A terminal that goes away must not stop the work.
    if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
  }

  std::mutex mutex_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
  std::atomic<bool> shown_ = false;
};

}  // namespace

size_t TerminalWidth(int fd) {
  size_t width = kDefaultWidth;
  winsize size{};
  const char* columns = std::getenv("COLUMNS");
  const long asked = columns == nullptr ? 0 : std::strtol(columns, nullptr, 10);
  if (asked > 0) {
    width = static_cast<size_t>(asked);
  } else if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    width = size.ws_col;
  }
  return std::clamp(width, kNarrowest, kWidest);
}

bool WantsColor(int fd, bool refused) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (refused || (no_color != nullptr && *no_color != '\0')) return false;
  return isatty(fd) != 0 && term != nullptr && std::strcmp(term, "dumb") != 0;
}

std::unique_ptr<base::Progress> MakeProgress(bool quiet) {
  if (quiet || isatty(STDERR_FILENO) == 0) return std::make_unique<NoProgress>();
  return std::make_unique<TerminalProgress>();
}

base::Result<Output> Output::Open(const std::string& path) {
  if (path.empty() || path == "-") return Output(STDOUT_FILENO, "standard output", false);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    return base::Error{.code = base::Code::kUnreadable,
                       .message = fmt::format("cannot write: {}", std::strerror(errno)),
                       .path = path};
  }
  return Output(fd, path, true);
}

Output::Output(Output&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      name_(std::move(other.name_)),
      owned_(std::exchange(other.owned_, false)),
      reader_gone_(other.reader_gone_) {}

Output::~Output() {
  if (owned_ && fd_ >= 0) close(fd_);
}

base::Status Output::Write(std::string_view text) {
  while (!text.empty() && !reader_gone_) {
    const ssize_t n = write(fd_, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EPIPE) {
      reader_gone_ = true;
    } else if (errno != EINTR) {
      return base::Error{.code = base::Code::kUnreadable,
                         .message = fmt::format("cannot write: {}", std::strerror(errno)),
                         .path = name_};
    }
  }
  return {};
}

base::Status Output::Close() {
  if (!owned_ || fd_ < 0) return {};
  const bool failed = close(std::exchange(fd_, -1)) != 0;
  if (!failed) return {};
  return base::Error{
      .code = base::Code::kUnreadable, .message = fmt::format("cannot write: {}", std::strerror(errno)), .path = name_};
}

}  // namespace teller::cli
