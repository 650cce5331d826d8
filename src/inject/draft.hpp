#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/status.hpp"

namespace teller::inject {

/// A folder that is written as NAME.part and removed unless it is kept: what has its final name is whole. Guarded work
/// (base/guard.hpp) removes it also when it is killed.
class Draft {
 public:
  /// Makes the folder. Errors: kUsage (one of the names is there), kUnreadable (cannot be made).
  static base::Result<Draft> Make(const std::string& name);
  Draft(Draft&& other) noexcept
      : name_(std::move(other.name_)), path_(std::move(other.path_)), kept_(std::exchange(other.kept_, true)) {}
  Draft& operator=(Draft&&) = delete;
  ~Draft();

  const std::filesystem::path& path() const { return path_; }

  /// Gives it its name. Errors: kUnreadable.
  base::Status Keep();

 private:
  explicit Draft(std::filesystem::path name);

  std::filesystem::path name_;
  std::filesystem::path path_;
  bool kept_ = false;
};

}  // namespace teller::inject
