#include "inject/draft.hpp"

#include "base/guard.hpp"

namespace teller::inject {

namespace fs = std::filesystem;

namespace {

/// True also for a link that leads nowhere: its name is taken.
bool IsThere(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

base::Error CannotBeMade(const fs::path& path, const std::string& why) {
  return {base::Code::kUnreadable, "cannot be written: " + why, path.string()};
}

}  // namespace

Draft::Draft(fs::path name) : name_(std::move(name)), path_(name_.string() + ".part") {}

base::Result<Draft> Draft::Make(const std::string& name) {
  std::error_code error;
  fs::path whole = fs::path(name).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();  // "name/"
  if (IsThere(whole)) return base::Error{base::Code::kUsage, "is there already; name a new folder", whole.string()};
  Draft draft(std::move(whole));
  draft.kept_ = true;  // until it is ours
  if (draft.path_.has_parent_path()) fs::create_directories(draft.path_.parent_path(), error);
  if (error) return CannotBeMade(draft.path_, error.message());
  // Left over by a run that was killed, or written by one that goes on; the user knows which.
  if (IsThere(draft.path_)) {
    return base::Error{base::Code::kUsage, "is there already; remove it unless another run writes it",
                       draft.path_.string()};
  }
  base::GuardFolder(draft.path_.string());  // first: this may be killed at any moment
  if (!fs::create_directory(draft.path_, error)) {
    base::LeaveFolder(draft.path_.string());
    return CannotBeMade(draft.path_, error ? error.message() : "it has appeared meanwhile");
  }
  draft.kept_ = false;
  return draft;
}

Draft::~Draft() {
  std::error_code error;
  if (!kept_) fs::remove_all(path_, error);
}

base::Status Draft::Keep() {
  std::error_code error;
  fs::rename(path_, name_, error);
  if (error) return base::Error{base::Code::kUnreadable, "cannot be renamed: " + error.message(), path_.string()};
  kept_ = true;
  return {};
}

}  // namespace teller::inject
