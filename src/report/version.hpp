#pragma once

namespace teller::report {

/// Version of the program, as `teller --version` and every report give it.
inline constexpr const char* kVersion = TELLER_VERSION;

}  // namespace teller::report
