#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "score/judge.hpp"
#include "score/metrics.hpp"
#include "score/truth.hpp"

namespace teller::score {

/// One figure about one method on one group of cases.
struct Figure {
  std::string name;             ///< key of docs/reference/scores.md: "step_f1_at_1"
  std::optional<double> value;  ///< absent where it is not defined
  Interval95 interval;          ///< bootstrap over cases
};

/// All figures of one method on one group.
struct Table {
  std::string method;
  std::string group;  ///< "all", "view", "stack", "class", "magnitude", "effect", "source"
  std::string value;  ///< "horizontal", "vllm", ...
  size_t cases = 0;
  size_t faults = 0;
  size_t steps = 0;  ///< of the job, that count
  size_t abnormal_steps = 0;
  std::vector<Figure> figures;  ///< always the same ones in the same order
  const Figure& Get(const std::string& name) const;
};

/// Priors of steps, with the suffix that names them.
struct Prior {
  double share;
  const char* suffix;
};
/// Figures at a prior are absent where that share of the healthy steps is not one whole step: a rate of false alarms as
/// small as the prior cannot be seen there.
inline constexpr Prior kPriors[] = {{0.5, "50"}, {0.1, "10"}, {0.01, "1"}, {0.001, "0_1"}};

struct TableOptions {
  unsigned resamples = 200;
  uint64_t seed = 1;
};

/// Groups of the asked cases and the figures of each. `judged` runs parallel to `truths`; cases whose fault only the
/// client saw count nowhere.
std::vector<Table> MakeTables(const std::string& method, const std::vector<const Truth*>& truths,
                              const std::vector<Judged>& judged, const TableOptions& options);

/// Answers that were lost for one reason.
struct Loss {
  std::string reason;
  std::vector<std::string> cases;
  std::map<std::string, size_t> by_effect;  ///< how far the faults show in the times of their steps
  std::map<std::string, size_t> by_what;    ///< classes, classes that were said, kinds of controls
};
/// Order: most frequent first.
std::vector<Loss> GroupLosses(const std::vector<const Truth*>& truths, const std::vector<Judged>& judged);

/// Whether verdicts whose repair would have helped are right more often: abnormal verdicts about cases that count, by
/// the share of the lost time that the method says its first candidate's repair would save.
struct Necessity {
  std::string group;  ///< "saved_share >= 0.3", "saved_share < 0.3", "not computed"
  size_t verdicts = 0;
  size_t right = 0;             ///< status, class and place
  size_t right_place = 0;       ///< a fault, and the first candidate's rank, process or operator is right, as labelled
  size_t candidates = 0;        ///< of all abnormal verdicts, not the first alone
  size_t candidates_right = 0;  ///< of these, the place is right
  Interval95 right_interval;
  Interval95 place_interval;
};
inline constexpr double kNecessary = 0.3;
inline constexpr std::string_view kNotComputed = "not computed";
std::vector<Necessity> CompareNecessity(const std::vector<const Truth*>& truths, const std::vector<Judged>& judged,
                                        const TableOptions& options);

/// Whether verdicts are right more often where re-timing confirms them: of faults that count and were called abnormal,
/// by the share of the steps' excess that is gone with the accused at its normal time. "horizontal": one of several
/// ranks is to be named, and the rank is tested; "vertical": an operator, and that is tested.
struct Confirmed {
  std::string view;
  std::string group;  ///< ">= 0.3", "< 0.3", "not told"
  size_t verdicts = 0;
  size_t right = 0;     ///< the rank is a right one; the operator is, and its rank where ranks tell anything
  Interval95 interval;  ///< bootstrap over cases
};
/// Of one method or of several together; each entry of `methods` is parallel to `truths`. Empty where nothing was
/// tested.
std::vector<Confirmed> CompareRetests(const std::vector<const Truth*>& truths,
                                      const std::vector<const std::vector<Judged>*>& methods,
                                      const TableOptions& options);

}  // namespace teller::score
