#include "cli/guarded.hpp"

#include <fmt/format.h>

#include "base/guard.hpp"
#include "cli/talk.hpp"

namespace teller::cli {

int Guarded(const std::function<int()>& work) {
  const auto end = base::RunGuarded(work);
  if (!end) return Fail(end.error().Text());
  if (end->interrupted) return Fail("interrupted; nothing was kept");
  if (end->signal != 0) return Fail(fmt::format("ended by signal {}; nothing was kept", end->signal));
  return end->status;
}

}  // namespace teller::cli
