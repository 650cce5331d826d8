#include "ingest/common/discover.hpp"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

namespace teller::ingest {

namespace {

namespace fs = std::filesystem;
using base::DiagnosticKind;
using base::Severity;

constexpr DiagnosticKind kMissing = {"input.missing", Severity::kError, "a named file or directory does not exist"};
constexpr DiagnosticKind kUnreadableFolder = {"input.unreadable_folder", Severity::kDataLoss,
                                              "a folder cannot be listed, so nothing in it was read"};
constexpr DiagnosticKind kBrokenLink = {"input.broken_link", Severity::kDataLoss,
                                        "a link in a folder leads nowhere or in a circle, so nothing was read there"};
constexpr DiagnosticKind kLinkedFolder = {
    "input.linked_folder", Severity::kDataLoss,
    "links to other folders are not followed; name the folder itself if it belongs to the run"};
constexpr DiagnosticKind kLinkInside = {"input.link_inside", Severity::kInfo,
                                        "a link to a folder that is searched anyway; not followed"};

/// Why a file of this type is not opened; empty for a regular file.
std::string_view Special(fs::file_type type) {
  switch (type) {
    case fs::file_type::fifo:
      return "is a pipe, not a regular file; give its data to standard input (-) or write it to a file first";
    case fs::file_type::socket: return "is a socket, not a regular file";
    case fs::file_type::character:
    case fs::file_type::block: return "is a device, not a regular file";
    default: return {};
  }
}

/// True when `path` is `folder` or lies below it; both canonical.
bool Within(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

/// Matches of a glob pattern; empty when it is no pattern or nothing matches.
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
  explicit Collector(bool relative) : relative_(relative) {}

  void Add(const std::string& name, bool as_log) {
    std::error_code error;
    const fs::file_status status = fs::status(name, error);
    if (fs::exists(status)) return AddNamed(name, status.type(), as_log);
    const auto matches = Expand(name);
    for (const auto& match : matches) {
      std::error_code ignored;  // a link that leads nowhere is refused when it is opened
      AddNamed(match, fs::status(match, ignored).type(), as_log);
    }
    if (!matches.empty()) return;
    if (status.type() == fs::file_type::none) {
      Note(kUnreadableInput, base::Code::kUnreadable, error.message(), name);
    } else {
      Note(kMissing, base::Code::kNotFound, "no such file or directory", name);
    }
  }

  Discovered Take() && {
    auto& problems = found_.problems;
    const auto key = [](const DiscoverProblem& p) { return std::tie(p.error.path, p.kind->code, p.error.message); };
    std::sort(problems.begin(), problems.end(),
              [&](const DiscoverProblem& a, const DiscoverProblem& b) { return key(a) < key(b); });
    problems.erase(std::unique(problems.begin(), problems.end(),
                               [&](const DiscoverProblem& a, const DiscoverProblem& b) { return key(a) == key(b); }),
                   problems.end());
    found_.files = WithoutDuplicates(std::move(found_.files));
    return std::move(found_);
  }

 private:
  void AddNamed(const std::string& name, fs::file_type type, bool as_log) {
    if (type == fs::file_type::directory) return Walk(name, as_log);
    found_.files.push_back({name, name, true, as_log, {}, Special(type)});
  }

  /// Everything below `root`. Links to directories are not followed, so that there are no circles.
  void Walk(const fs::path& root, bool as_log) {
    std::vector<fs::path> waiting{root};
    while (!waiting.empty()) {
      const fs::path folder = std::move(waiting.back());
      waiting.pop_back();
      std::error_code error;
      fs::directory_iterator entry(folder, error);
      for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
        if (entry->path().filename().native().front() == '.') continue;
        std::error_code unknown;
        if (entry->symlink_status(unknown).type() == fs::file_type::directory) {
          waiting.push_back(entry->path());
        } else {
          AddEntry(*entry, root, as_log);
        }
      }
      if (error) {
        Note(kUnreadableFolder, base::Code::kUnreadable, "cannot read the directory: " + error.message(),
             folder.string());
      }
    }
  }

  void AddEntry(const fs::directory_entry& entry, const fs::path& root, bool as_log) {
    std::error_code error;
    const fs::path& path = entry.path();
    const fs::file_type type = entry.status(error).type();
    if (type == fs::file_type::none || type == fs::file_type::not_found) {
      const std::string why = error ? error.message() : "no such file or directory";
      return Note(kBrokenLink, base::Code::kUnreadable, "cannot be followed: " + why, path.string());
    }
    if (type == fs::file_type::directory) return SkipLinkedFolder(path, root);
    const std::string shown = relative_ ? path.lexically_relative(root).string() : path.string();
    found_.files.push_back({path.string(), shown, false, as_log, {}, Special(type)});
  }

  void SkipLinkedFolder(const fs::path& link, const fs::path& root) {
    std::error_code error;
    const fs::path target = fs::weakly_canonical(link, error);
    const fs::path place = fs::weakly_canonical(link.parent_path(), error);
    if (Within(place, target)) {
      Note(kBrokenLink, base::Code::kUnreadable, "leads back to a folder that it lies in", link.string());
    } else if (Within(target, fs::weakly_canonical(root, error))) {
      Note(kLinkInside, base::Code::kUnreadable, "not followed", link.string());
    } else {
      Note(kLinkedFolder, base::Code::kUnreadable, "not followed", link.string());
    }
  }

  void Note(const DiagnosticKind& kind, base::Code code, std::string message, std::string path) {
    found_.problems.push_back({&kind, {code, std::move(message), std::move(path)}});
  }

  /// Sorted by path. Of several spellings of one file the first one stays; what was said about any of them holds.
  static std::vector<Found> WithoutDuplicates(std::vector<Found> files) {
    std::sort(files.begin(), files.end(), [](const Found& a, const Found& b) {
      return std::make_tuple(std::cref(a.path), !a.named) < std::make_tuple(std::cref(b.path), !b.named);
    });
    std::map<std::string, size_t> seen;  // canonical path to place in `out`
    std::vector<Found> out;
    for (auto& file : files) {
      std::error_code error;
      const fs::path canonical = fs::weakly_canonical(file.path, error);
      const auto [it, is_new] = seen.emplace(error ? file.path : canonical.string(), out.size());
      if (is_new) {
        out.push_back(std::move(file));
      } else {
        out[it->second].named |= file.named;
        out[it->second].as_log |= file.as_log;
      }
    }
    return out;
  }

  bool relative_;
  Discovered found_;
};

}  // namespace

Discovered Discover(const std::vector<std::string>& paths, const std::vector<std::string>& logs) {
  const std::set<std::string> names(paths.begin(), paths.end());
  std::error_code error;
  Collector collector(names.size() == 1 && fs::is_directory(*names.begin(), error));
  for (const auto& log : logs) collector.Add(log, true);
  for (const auto& path : names) collector.Add(path, false);
  return std::move(collector).Take();
}

}  // namespace teller::ingest
