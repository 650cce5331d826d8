#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "score/method.hpp"
#include "score/table.hpp"

namespace teller::score {

struct ScoreOptions {
  std::vector<std::string> roots;    ///< folders with cases
  std::vector<std::string> methods;  ///< as ParseMethods takes them
  std::string baselines;             ///< command that knows further methods by name; may be empty
  std::string reads;                 ///< folder that keeps what was read of the cases for later runs; may be empty
  std::string split = "none";
  uint64_t seed = 1;
  unsigned resamples = 200;
  unsigned workers = 0;  ///< cases at once; 0 = one per core
  unsigned timeout_s = 300;
  uint64_t memory = 0;          ///< bytes for one case; 0 = no bound
  bool shuffle_labels = false;  ///< lessons are told with each other's truth
  bool retest = false;          ///< test verdicts about faults by re-timing
  bool keep_work = false;       ///< keep copies, features and tasks beside the results
};

/// What one method came to.
struct MethodScore {
  Method method;
  std::vector<Judged> judged;  ///< of Scores::asked
  std::vector<Table> tables;
  std::vector<Loss> losses;
  std::vector<Necessity> necessity;
  std::vector<Confirmed> confirmed;   ///< empty unless verdicts are tested
  size_t unanswered = 0;              ///< of the asked cases
  std::vector<std::string> problems;  ///< folds in which it failed, answers that could not be read
  nlohmann::ordered_json remarks;     ///< by fold: what it says of its search; null when it says nothing
  int64_t wall_ns = 0;                ///< of outside commands, all folds
};

/// Everything that scoring found out.
struct Scores {
  ScoreOptions options;
  std::vector<Truth> cases;
  std::vector<std::string> names;     ///< neutral ones
  std::vector<std::string> problems;  ///< cases that could not be read: "case: why"
  std::vector<std::string> untested;  ///< cases of which verdicts were to be tested and could not: the same
  std::vector<Fold> folds;
  std::vector<uint32_t> asked;  ///< cases that some fold asks, in order
  std::vector<MethodScore> methods;
  std::vector<Confirmed> confirmed;  ///< of all outside methods together; empty unless verdicts are tested
  int64_t wall_ns = 0;
  int64_t prepare_ns = 0;  ///< of these, copying, reading and, where asked, TELLER's own answers
};

/// Reads the cases, prepares neutral copies, lets every method answer, compares. Answers stay in
/// `folder`/answers/METHOD. `say` gets one line a stage. Errors: those of the stages; kNotFound without a case or an
/// answer.
base::Result<Scores> ScoreCases(const ScoreOptions& options, const std::string& folder,
                                const std::function<void(const std::string&)>& say);

/// One line that counts what was lost: cases that could not be read, answers that did not come. Empty when nothing was.
std::string LostText(const Scores& scores);

}  // namespace teller::score
