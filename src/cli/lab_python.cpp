#include "cli/lab_python.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/talk.hpp"

namespace teller::cli {

namespace fs = std::filesystem;

namespace {

/// Debian's own Python sees Debian's packages; another one that comes first in PATH may not.
constexpr const char* kDebianPython = "/usr/bin/python3";

/// It is started with -P: a folder "lab" where the user happens to be is not ours.
std::string Python() {
  return access(kDebianPython, X_OK) == 0 ? kDebianPython : "python3";
}

bool Holds(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "lab" / "__main__.py", error);
}

fs::path OwnPath() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

/// What the laboratory's programs find in their environment: the package, and this program for when they need it.
void SetEnvironment(const std::string& folder) {
  const char* before = std::getenv("PYTHONPATH");
  const std::string path = before == nullptr || *before == '\0' ? folder : folder + ":" + before;
  setenv("PYTHONPATH", path.c_str(), 1);
  setenv("TELLER", OwnPath().c_str(), 0);
}

std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

}  // namespace

base::Result<std::string> FindLabPython() {
  if (const char* told = std::getenv("TELLER_LAB_PATH"); told != nullptr && *told != '\0') {
    std::error_code error;
    if (Holds(told)) return fs::absolute(told, error).string();
    return base::Error{base::Code::kNotFound,
                       "TELLER_LAB_PATH names this folder, but there is no lab/__main__.py in it", told};
  }
  // build/PRESET/teller of a source tree, bin/teller of an installed one.
  fs::path folder = OwnPath().parent_path();
  for (int i = 0; i < 3 && !folder.empty(); ++i, folder = folder.parent_path()) {
    for (const fs::path& candidate : {folder, folder / "share" / "teller"}) {
      if (Holds(candidate)) return candidate.string();
    }
  }
  return base::Error{.code = base::Code::kNotFound,
                     .message =
                         "this needs the laboratory's part in Python, and it is not beside this program; name the "
                         "folder that holds \"lab\" (a clone of the sources) in TELLER_LAB_PATH"};
}

int RunLabPython(const std::vector<std::string>& args) {
  const auto folder = FindLabPython();
  if (!folder) return Fail(folder.error().Text());
  SetEnvironment(*folder);
  const std::string python = Python();
  std::vector<const char*> words{python.c_str(), "-P", "-m", "lab"};
  for (const std::string& arg : args) words.push_back(arg.c_str());
  words.push_back(nullptr);
  execvp(python.c_str(), const_cast<char* const*>(words.data()));
  return Fail(python + " cannot be started: " + std::strerror(errno) + "; install Python 3");
}

base::Result<std::string> LabPythonCommand(const std::string& module) {
  const auto folder = FindLabPython();
  if (!folder) return folder.error();
  return "env PYTHONPATH=" + Quoted(*folder) + "${PYTHONPATH:+:$PYTHONPATH} TELLER=" + Quoted(OwnPath().string()) +
         " " + Python() + " -P -m " + module;
}

base::Result<std::string> ListOfLabPython() {
  const auto command = LabPythonCommand("lab");
  if (!command) return command.error();
  const base::Error failed{.code = base::Code::kUnreadable, .message = *command + " list: failed"};
  std::FILE* pipe = popen((*command + " list").c_str(), "r");
  if (pipe == nullptr) return failed;
  std::string text;
  std::array<char, 4096> piece{};
  for (size_t n = 0; (n = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;) text.append(piece.data(), n);
  if (pclose(pipe) != 0) return failed;
  return text;
}

}  // namespace teller::cli
