#include "ingest/common/discover.hpp"

#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

namespace teller::ingest {

namespace {

namespace fs = std::filesystem;

/// Regular files below `directory`, sorted by path.
std::vector<std::string> Walk(const fs::path& directory, std::vector<base::Error>& missing) {
  std::vector<std::string> files;
  std::error_code error;
  auto it = fs::recursive_directory_iterator(directory, fs::directory_options::skip_permission_denied, error);
  if (error) {
    missing.push_back({base::Code::kUnreadable, "cannot read the directory: " + error.message(), directory.string()});
    return files;
  }
  for (; it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (error) {
      missing.push_back({base::Code::kUnreadable, "cannot read the directory: " + error.message(), directory.string()});
      break;
    }
    const bool hidden = it->path().filename().native().front() == '.';
    if (hidden && it->is_directory(error)) it.disable_recursion_pending();
    if (!hidden && it->is_regular_file(error)) files.push_back(it->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Matches of a glob pattern, sorted; empty when it is no pattern or nothing matches.
std::vector<std::string> Expand(const std::string& pattern) {
  std::vector<std::string> out;
  glob_t matches = {};
  if (::glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
    for (size_t i = 0; i < matches.gl_pathc; ++i) out.emplace_back(matches.gl_pathv[i]);
  }
  ::globfree(&matches);
  return out;
}

class Collector {
 public:
  Collector(bool relative, std::vector<base::Error>& missing) : relative_(relative), missing_(missing) {}

  void Add(const std::string& name, bool as_log) {
    std::error_code error;
    if (fs::is_directory(name, error)) return AddDirectory(name, as_log);
    if (fs::exists(name, error)) return AddFile({name, name, true, as_log});
    const auto matches = Expand(name);
    for (const auto& match : matches) {
      if (fs::is_directory(match, error)) {
        AddDirectory(match, as_log);
      } else {
        AddFile({match, match, true, as_log});
      }
    }
    if (matches.empty()) missing_.push_back({base::Code::kNotFound, "no such file or directory", name});
  }

  std::vector<Found> files() && { return std::move(files_); }

 private:
  void AddDirectory(const std::string& directory, bool as_log) {
    for (const auto& path : Walk(directory, missing_)) {
      AddFile({path, relative_ ? fs::path(path).lexically_relative(directory).string() : path, false, as_log});
    }
  }

  void AddFile(Found found) {
    std::error_code error;
    const fs::path canonical = fs::weakly_canonical(found.path, error);
    if (seen_.insert(error ? found.path : canonical.string()).second) files_.push_back(std::move(found));
  }

  bool relative_;
  std::vector<base::Error>& missing_;
  std::set<std::string> seen_;
  std::vector<Found> files_;
};

}  // namespace

std::vector<Found> Discover(const std::vector<std::string>& paths, const std::vector<std::string>& logs,
                            std::vector<base::Error>& missing) {
  std::error_code error;
  const bool one_directory = paths.size() == 1 && fs::is_directory(paths.front(), error);
  Collector collector(one_directory, missing);
  // Logs first: a file that is named as a log and also lies in the directory is a log.
  for (const auto& log : logs) collector.Add(log, true);
  for (const auto& path : paths) collector.Add(path, false);
  auto files = std::move(collector).files();
  std::stable_partition(files.begin(), files.end(), [](const Found& found) { return !found.as_log; });
  return files;
}

}  // namespace teller::ingest
