#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/progress.hpp"
#include "base/status.hpp"

namespace teller::cli {

/// Columns of the terminal on `fd`: the COLUMNS variable, what the terminal says, or 80; within 40..200.
size_t TerminalWidth(int fd);

/// True when colour is wanted on `fd`: it is a terminal that knows colours, NO_COLOR is not set, the user did not
/// refuse.
bool WantsColor(int fd, bool refused);

/// Shows the stage and how far it is on stderr, once the work took longer than half a second; nothing when stderr is no
/// terminal or `quiet`. The line is wiped by the destructor.
std::unique_ptr<base::Progress> MakeProgress(bool quiet);

/// Where a command's result goes: stdout or a file. A closed pipe counts as success and swallows the rest.
/// Threads: confined.
class Output {
 public:
  /// An empty path or "-" is stdout. Errors: kUnreadable with the system's reason.
  static base::Result<Output> Open(const std::string& path);
  Output(Output&& other) noexcept;
  Output& operator=(Output&&) = delete;
  ~Output();

  /// Errors: kUnreadable (no space, ...).
  base::Status Write(std::string_view text);
  /// Everything is with the system after this. Errors: kUnreadable.
  base::Status Close();

 private:
  Output(int fd, std::string name, bool owned) : fd_(fd), name_(std::move(name)), owned_(owned) {}

  int fd_ = -1;
  std::string name_;
  bool owned_ = false;
  bool reader_gone_ = false;
};

}  // namespace teller::cli
