#include "score/copies.hpp"

namespace teller::score {

namespace fs = std::filesystem;

namespace {

/// A second name of a symbolic link would be one more link, with the origin's name in it.
bool HasSymlink(const fs::path& folder) {
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(folder, error); !error && it != fs::recursive_directory_iterator();
       it.increment(error)) {
    if (it->is_symlink(error)) return true;
  }
  return false;
}

}  // namespace

base::Error CannotWrite(const fs::path& path, const std::error_code& error) {
  return {.code = base::Code::kUnreadable, .message = "cannot be written: " + error.message(), .path = path.string()};
}

bool IsTruthFile(const std::string& name) {
  return name == "label.json" || name == "evidence.json" || name == "requests.jsonl" || name == "README.md";
}

base::Status CopyInputs(const fs::path& from, const fs::path& to, bool link) {
  std::error_code error;
  fs::create_directories(to, error);
  if (error) return CannotWrite(to, error);
  link &= !HasSymlink(from);
  for (const auto& entry : fs::directory_iterator(from, error)) {
    const std::string name = entry.path().filename().string();
    if (IsTruthFile(name)) continue;
    constexpr auto kWhole = fs::copy_options::recursive;
    if (link) fs::copy(entry.path(), to / name, kWhole | fs::copy_options::create_hard_links, error);
    if (!link || error) {
      std::error_code ignored;
      fs::remove_all(to / name, ignored);
      error.clear();
      fs::copy(entry.path(), to / name, kWhole, error);
    }
    if (error) return CannotWrite(to / name, error);
  }
  if (error) return base::Error{base::Code::kUnreadable, "cannot be read: " + error.message(), from.string()};
  return {};
}

}  // namespace teller::score
