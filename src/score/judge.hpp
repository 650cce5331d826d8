#pragma once

#include <optional>
#include <string>
#include <vector>

#include "score/answer.hpp"
#include "score/metrics.hpp"
#include "score/truth.hpp"

namespace teller::score {

/// One step of the job, over all ranks, with its truth and what the method says.
struct JobStep {
  bool abnormal = false;
  double score = 0;  ///< the largest of its ranks
  bool flagged = false;
};

/// One candidate of an answer to a faulty case, or to a control, where none is right.
struct JudgedCandidate {
  bool right_place = false;  ///< rank, process where ranks tell nothing, operator: each as far as labelled
  std::optional<double> saved_share;
};

/// What re-timing says of an answer's first candidate: of the time by which its steps are longer than normal, the share
/// that putting the accused at its normal time would save. No share where that could not be told.
struct Retested {
  bool asked_rank = false;     ///< the answer names a rank, and that was tested
  bool asked_op = false;       ///< it names an operator, and that was tested
  std::optional<double> rank;  ///< with all that it does by itself
  std::optional<double> op;
};

/// How good one answer to one case is. Members that the label does not decide are absent.
struct Judged {
  bool answered = false;  ///< there is an answer, be it "abstained"
  bool abstained = false;
  bool flagged = false;  ///< called abnormal
  double confidence = 0;
  std::optional<Place> op_place;       ///< of the first candidate with a right operator or module
  std::optional<Place> rank_place;     ///< of the first candidate with the right one of several ranks
  std::optional<Place> process_place;  ///< of the first candidate with the right process
  std::optional<Place> line_place;     ///< of the first candidate with the log line of the cause
  std::string said_class;              ///< NOT_A_FAULT when called normal; empty when unanswered
  std::string counted_class;           ///< the same, with classes that are right too counted as the labelled one
  std::string true_class;              ///< observer effects count as NOT_A_FAULT
  bool right = false;  ///< status, and for faults class and place of the first candidate, as far as labelled
  std::string loss;    ///< why it is not right ("missed", "wrong class", ...), or "wrong step"; empty when all is right
  std::string loss_what;  ///< more about it, in words that group: the classes, the kind of control
  std::string effect;     ///< how far the fault shows in the times of its steps; "controls" without one
  std::vector<JudgedCandidate> candidates;  ///< of a case called abnormal
  Retested retested;
  std::optional<int64_t> wall_ns;
  std::optional<int64_t> peak_bytes;
  std::vector<JobStep> steps;  ///< those that count
};

/// Compares an answer (null = none came) with the truth. Steps of several ranks with one index are one step of the job.
Judged Judge(const Truth& truth, const std::vector<ReadStep>& steps, const Answer* answer);

/// Letters and digits of both, lower case: one holds the other, and the shorter has three or more.
bool SameName(const std::string& a, const std::string& b);

}  // namespace teller::score
