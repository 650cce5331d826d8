#pragma once

#include <cstdint>

namespace teller::tpe::testing {

/// How often this test program has allocated.
uint64_t Allocations();

}  // namespace teller::tpe::testing
