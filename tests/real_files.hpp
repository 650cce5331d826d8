#pragma once

#include <filesystem>
#include <string>

/// Root of the real files, or empty when they are not here.
inline std::string RealFiles() {
  const char* const root = "../shared/data";
  return std::filesystem::is_directory(root) ? root : "";
}

/// Skips the test aloud when the real files are absent.
#define TELLER_NEED_REAL_FILES()                            \
  if (RealFiles().empty()) {                                \
    GTEST_SKIP() << "real files are not at ../shared/data"; \
  }
