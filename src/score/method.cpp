#include "score/method.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/guard.hpp"
#include "score/json_file.hpp"

namespace teller::score {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

fs::path RemarksPath(const std::string& folder) {
  return fs::path(folder) / "method.json";
}

Json ToJson(const Lesson& lesson) {
  const inject::Label& label = lesson.truth->label;
  Json accepted = Json::array();
  for (const trace::FaultClass fault : label.accepted) accepted.push_back(trace::Name(fault));
  Json rank = nullptr;
  if (label.culprit && label.culprit->rank) rank = *label.culprit->rank;
  Json process = nullptr;
  if (label.culprit && !label.culprit->process.empty()) process = label.culprit->process;
  return {{"case", lesson.name},
          {"is_fault", label.is_fault},
          {"class", trace::Name(label.is_fault ? label.fault : trace::FaultClass::kNotAFault)},
          {"accept_classes", std::move(accepted)},
          {"rank", std::move(rank)},
          {"process", std::move(process)},
          {"world_size", label.world_size},
          {"ops", lesson.truth->accepted_ops},
          {"steps_told", lesson.truth->steps_told},
          {"abnormal_steps", lesson.abnormal_steps},
          {"ignored_steps", lesson.ignored_steps}};
}

/// Waits for the child; true when it had to be ended because `limit` was over.
bool WaitAtMost(pid_t child, std::chrono::seconds limit, int& status, rusage& usage) {
  constexpr useconds_t kLook = 5'000;
  const auto begin = std::chrono::steady_clock::now();
  bool late = false;
  for (;;) {
    const bool wait = late || limit.count() == 0;
    const pid_t ended = wait4(child, &status, wait ? 0 : WNOHANG, &usage);
    if (ended == child || (ended < 0 && errno != EINTR)) return late;
    if (ended != 0) continue;
    late = std::chrono::steady_clock::now() - begin >= limit;
    if (late) {
      kill(-child, SIGKILL);
    } else {
      usleep(kLook);
    }
  }
}

}  // namespace

bool IsMethodName(const std::string& name) {
  if (name.empty() || name.size() > 60) return false;
  for (const char c : name) {
    const bool good =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (!good) return false;
  }
  return true;
}

base::Result<std::vector<Method>> ParseMethods(const std::vector<std::string>& texts, const std::string& baselines) {
  std::vector<Method> methods;
  std::set<std::string> names;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    Method method{.name = text.substr(0, equals), .command = {}, .wants_copies = false};
    const auto refuse = [&](const std::string& why) {
      return base::Error{.code = base::Code::kUsage, .message = "method \"" + text + "\": " + why};
    };
    if (!IsMethodName(method.name)) return refuse("a name has letters, digits, - and _, at most 60");
    if (!names.insert(method.name).second) return refuse("is given twice");
    if (equals != std::string::npos) {
      method.command = text.substr(equals + 1);
      method.wants_copies = true;
      if (method.command.empty()) return refuse("no command behind =");
    } else if (method.name != "teller") {
      if (baselines.empty())
        return refuse(
            "is not built in, and the laboratory's baselines are not beside this program (TELLER_LAB_PATH); "
            "NAME=COMMAND names one of your own");
      method.command = baselines + " " + method.name;
      method.all_folds = true;
    }
    methods.push_back(std::move(method));
  }
  return methods;
}

base::Result<std::string> WriteTask(const std::string& work, const std::string& folder,
                                    const std::vector<Lesson>& lessons, const std::vector<std::string>& asked,
                                    uint64_t seed) {
  const fs::path answers = fs::path(folder) / "answers";
  std::error_code error;
  fs::create_directories(answers, error);
  if (error) return base::Error{base::Code::kUnreadable, "cannot be made: " + error.message(), answers.string()};
  Json train = Json::array();
  for (const Lesson& lesson : lessons) train.push_back(ToJson(lesson));
  const Json task = {{"schema", "teller.task/1"},
                     {"seed", seed},
                     {"cases", fs::absolute(fs::path(work) / "cases").string()},
                     {"features", fs::absolute(fs::path(work) / "features").string()},
                     {"answers", fs::absolute(answers).string()},
                     {"remarks", fs::absolute(RemarksPath(folder)).string()},
                     {"train", std::move(train)},
                     {"test", asked}};
  const std::string path = fs::absolute(fs::path(folder) / "task.json").string();
  try {
    TELLER_TRY(WriteText(path, task.dump(1) + "\n"));
  } catch (const Json::type_error&) {
    return base::Error{base::Code::kUsage, "this name is no UTF-8, so a method cannot be told it; name another folder",
                       path};
  }
  return path;
}

base::Result<MethodRun> RunMethod(const Method& method, const std::vector<std::string>& tasks,
                                  std::chrono::seconds limit) {
  const std::string line = method.command + " \"$@\"";
  std::vector<const char*> words{"sh", "-c", line.c_str(), "sh"};
  for (const std::string& task : tasks) words.push_back(task.c_str());
  words.push_back(nullptr);
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = base::StartGuarded();
  if (child == 0) {
    dup2(STDERR_FILENO, STDOUT_FILENO);               // results are files; what a method prints is talk
    const int nothing = open("/dev/null", O_RDONLY);  // a group of its own gets no words from a terminal
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_DFL);
    execv("/bin/sh", const_cast<char* const*>(words.data()));
    _exit(127);
  }
  if (child < 0)
    return base::Error{.code = base::Code::kUnreadable,
                       .message = fmt::format("no process can be started: {}", std::strerror(errno))};
  int status = 0;
  rusage usage{};
  const bool late = WaitAtMost(child, limit, status, usage);
  base::EndGuarded(child);
  MethodRun run;
  run.wall_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count();
  run.peak_bytes = int64_t{usage.ru_maxrss} * 1024;
  if (WIFSIGNALED(status)) run.problem = fmt::format("died of signal {}", WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    run.problem = fmt::format("ended with status {}", WEXITSTATUS(status));
  if (late) run.problem = fmt::format("the time was over: ended after {} s", limit.count());
  return run;
}

Json RemarksOf(const std::string& folder) {
  auto said = ReadJsonObject(RemarksPath(folder).string());
  return said ? std::move(*said) : Json();
}

}  // namespace teller::score
