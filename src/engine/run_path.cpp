#include "engine/run_path.hpp"

#include <filesystem>

namespace teller::engine {

namespace fs = std::filesystem;

namespace {

/// The end of the archive's own name in the path of a member; npos when it is none.
size_t EndOfArchive(const std::string& path) {
  for (size_t at = path.find('!'); at != std::string::npos; at = path.find('!', at + 1)) {
    std::error_code ignored;
    if (fs::is_regular_file(path.substr(0, at), ignored)) return at;
  }
  return std::string::npos;
}

}  // namespace

std::string CanonicalPath(const std::string& path) {
  std::error_code error;
  const size_t archive = fs::exists(path, error) ? std::string::npos : EndOfArchive(path);
  const std::string member = archive == std::string::npos ? std::string() : path.substr(archive);
  const fs::path outer = fs::absolute(path.substr(0, archive), error);
  fs::path canonical = fs::weakly_canonical(outer, error);
  if (error) canonical = outer.lexically_normal();
  if (!canonical.has_filename() && canonical.has_relative_path()) canonical = canonical.parent_path();
  return canonical.string() + member;
}

std::string PathInRun(const std::string& run, const std::string& file) {
  std::error_code ignored;
  if (file.empty()) return run;
  if (!fs::is_directory(run, ignored)) return file;
  return run.ends_with('/') ? run + file : run + "/" + file;
}

}  // namespace teller::engine
