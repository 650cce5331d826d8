#include "base/status.hpp"

namespace teller::base {

std::string Error::Text() const {
  std::string out;
  if (!path.empty()) {
    out += path;
    if (!at.empty()) out += ":" + at;
    out += ": ";
  } else if (!at.empty()) {
    out += at + ": ";
  }
  return out + message;
}

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "teller: internal error: %s does not hold at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace teller::base
