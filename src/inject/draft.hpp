#pragma once

#include <filesystem>
#include <utility>

#include "base/status.hpp"

namespace teller::inject {

/// A folder that is written under another name and removed unless it is kept: what has its final name is whole.
class Draft {
 public:
  explicit Draft(std::filesystem::path path) : path_(std::move(path)) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    std::error_code error;
    if (!kept_) std::filesystem::remove_all(path_, error);
  }

  const std::filesystem::path& path() const { return path_; }

  /// Errors: kUnreadable.
  base::Status KeepAs(const std::filesystem::path& name) {
    std::error_code error;
    std::filesystem::rename(path_, name, error);
    if (error) return base::Error{base::Code::kUnreadable, "cannot be renamed: " + error.message(), path_.string()};
    kept_ = true;
    return {};
  }

 private:
  std::filesystem::path path_;
  bool kept_ = false;
};

}  // namespace teller::inject
