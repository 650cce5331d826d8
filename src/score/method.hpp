#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "score/prepare.hpp"
#include "score/split.hpp"

namespace teller::score {

/// Someone who answers cases.
struct Method {
  std::string name;
  std::string command;       ///< started with the path of a task as its last argument; empty = built in
  bool wants_copies = true;  ///< reads the inputs themselves, not only their features
  bool all_folds = false;    ///< takes the tasks of all folds at once; else one at a time
};

/// Letters, digits, - and _, at most 60: what a shell and a file system take as it is.
bool IsMethodName(const std::string& name);

/// Built in: "teller". "NAME=COMMAND" names an outside one; any other name is asked of `baselines` ("COMMAND NAME
/// TASK"), the laboratory. Errors: kUsage (no such method, an empty or doubled name).
base::Result<std::vector<Method>> ParseMethods(const std::vector<std::string>& texts, const std::string& baselines);

/// What is told to a method about one case to learn from.
struct Lesson {
  std::string name;
  const Truth* truth = nullptr;          ///< may be another case's, when labels are shuffled
  std::vector<uint32_t> abnormal_steps;  ///< numbers in the features
  std::vector<uint32_t> ignored_steps;
};

/// What came of one run of a method.
struct MethodRun {
  int64_t wall_ns = 0;
  int64_t peak_bytes = 0;
  std::string problem;  ///< why it gave no answers, or not all
};

/// Writes a task (schema "teller.task/1") into `folder`, whose "answers" is for the answers; its path. `work` has cases
/// and features. Errors: kUnreadable (cannot write).
base::Result<std::string> WriteTask(const std::string& work, const std::string& folder,
                                    const std::vector<Lesson>& lessons, const std::vector<std::string>& asked,
                                    uint64_t seed);

/// Runs the method's command on these tasks, with all of its group ended when it takes longer than `limit`; 0 = no
/// limit. Errors: kUnreadable (no process). A method that fails is no error.
base::Result<MethodRun> RunMethod(const Method& method, const std::vector<std::string>& tasks,
                                  std::chrono::seconds limit);

/// What the method said of itself about the task in `folder` (search over its parameters), null when nothing.
nlohmann::ordered_json RemarksOf(const std::string& folder);

}  // namespace teller::score
