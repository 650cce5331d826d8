#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// Figures that say how good answers are. Pure functions: same arguments, same result. A figure that is not defined (no
/// positives, nothing answered) is absent, never 0.
namespace teller::score {

/// Things that are abnormal or not, and how abnormal a method holds them.
struct Scored {
  double score = 0;       ///< larger = more abnormal; not NaN
  bool positive = false;  ///< the truth
  bool flagged = false;   ///< the method's decision
  uint32_t cluster = 0;   ///< what is drawn together by the bootstrap: the case
  uint32_t count = 1;     ///< how many there are
};

/// Counts of decisions; real numbers because they may be weighted.
struct Confusion {
  double true_positives = 0;
  double false_positives = 0;
  double false_negatives = 0;
  double true_negatives = 0;
};

struct Detection {
  std::optional<double> precision;  ///< absent when nothing is flagged
  std::optional<double> recall;     ///< absent without positives
  std::optional<double> f1;         ///< absent without positives; 0 when nothing is found
};

/// Precision, recall and F1 as they would be if a share `prior` of all were positive: negatives are re-weighted, the
/// rates of true and false alarms stay. `prior` in (0, 1); absent = as counted. Re-weighting needs both kinds.
Detection Detect(const Confusion& counts, std::optional<double> prior);

/// Largest score first; equal things become one with their count.
std::vector<Scored> ByScore(std::vector<Scored> items);

/// Area under the precision-recall curve as average precision (sum of precision times gain in recall, ties taken
/// together), at a prior as above. Absent without positives (or, with a prior, without negatives). `items` are in the
/// order of ByScore. `multiplicity` counts how often each cluster is drawn; empty = once each.
std::optional<double> AveragePrecision(const std::vector<Scored>& items, std::optional<double> prior,
                                       const std::vector<uint32_t>& multiplicity = {});

/// Where the first right answer of a ranked list stands, from 1; 0 = not in it.
using Place = uint32_t;
/// Share of places that are 1..k. Absent for an empty list.
std::optional<double> AccuracyAt(const std::vector<Place>& places, uint32_t k);
/// Mean of AccuracyAt(1), ..., AccuracyAt(k).
std::optional<double> AverageAt(const std::vector<Place>& places, uint32_t k);
/// Mean of 1 / place, 0 where there is none.
std::optional<double> MeanReciprocalRank(const std::vector<Place>& places);

/// Mean over the classes that occur in `truth` of their F1. `said` runs parallel to `truth`. Absent when both are
/// empty.
std::optional<double> MacroF1(const std::vector<std::string>& truth, const std::vector<std::string>& said);

/// An answer with how sure it is.
struct Confident {
  double confidence = 0;  ///< 0..1
  bool right = false;
};
/// Expected calibration error: mean distance of confidence and share of right ones over `bins` equal bins of
/// confidence, weighted by how many lie in each (Naeini et al. 2015). Absent for an empty list.
std::optional<double> CalibrationError(const std::vector<Confident>& answers, unsigned bins = 10);

/// Of answers in order of confidence, the first part that covers `coverage` of all `asked` ones: the share of wrong
/// answers in it. Abstentions are not in `answers`, so that coverage beyond those given is absent. Answers that are
/// equally sure count together, each with its part.
std::optional<double> RiskAt(const std::vector<Confident>& answers, size_t asked, double coverage);

/// A figure with the interval in which it lies in 95 % of redrawn samples.
struct Interval95 {
  std::optional<double> low;
  std::optional<double> high;
};

/// Percentile bootstrap over clusters: draws `clusters` of them with replacement, `resamples` times, from a generator
/// seeded with `seed`; `figures` gets how often each was drawn and returns the figures, always equally many, absent
/// ones included. Redrawn samples without the figure do not count towards its interval.
std::vector<Interval95> Bootstrap(
    size_t clusters, unsigned resamples, uint64_t seed,
    const std::function<std::vector<std::optional<double>>(const std::vector<uint32_t>&)>& figures);

}  // namespace teller::score
