#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace teller::score {

/// What a piece of work may take.
struct ChildLimits {
  unsigned workers = 0;    ///< at once; 0 = one per core
  unsigned timeout_s = 0;  ///< seconds for one; 0 = no bound
  uint64_t memory = 0;     ///< bytes of address space for one; 0 = no bound
};

/// Does work(i) for every i below `count`, each in a process of its own that ends with the status it returns: a crash,
/// an exception or a hang costs one of them. The wait statuses, in order. The calling process must have one thread and
/// no other children. Errors: kUnreadable (no process can be started or waited for).
base::Result<std::vector<int>> InChildren(size_t count, const ChildLimits& limits,
                                          const std::function<int(size_t)>& work);

/// Why a piece of work did not end well, by its wait status: "took longer than 5 s". Empty when it did.
std::string EndText(int status, const ChildLimits& limits);

}  // namespace teller::score
