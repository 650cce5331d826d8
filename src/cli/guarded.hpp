#pragma once

#include <functional>

namespace teller::cli {

/// Runs work that writes a folder so that nothing of it is left behind or running when it is stopped (base/guard.hpp);
/// its exit status, or that of a failure with one line. Call while there is one thread.
int Guarded(const std::function<int()>& work);

}  // namespace teller::cli
