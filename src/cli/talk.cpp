#include "cli/talk.hpp"

#include <unistd.h>

#include <string>

#include "report/printable.hpp"

namespace teller::cli {

void Say(std::string_view text) {
  const std::string line = "teller: " + report::Printable(text) + "\n";
  // Nothing can be done about a standard error that takes no text.
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

int Fail(std::string_view text) {
  Say(text);
  return kFailed;
}

}  // namespace teller::cli
