#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "trace/diagnosis.hpp"

namespace teller::score {

enum class AnswerStatus : uint8_t { kNormal, kAbnormal, kAbstained };
std::string_view Name(AnswerStatus status);

/// One suspected cause. Empty members say nothing.
struct Candidate {
  std::optional<int64_t> rank;
  std::string process;
  std::string op;
  std::string module;
  std::string log_record;
  std::string fault_class;
  double p = 0;
  std::optional<double> saved_share;  ///< of the time lost, what its repair would save, where the method computes that
  bool below_threshold = false;       ///< the method does not accuse it; it only says whom it would look at next
};

/// How abnormal one step is: its number in the case's features, its score on any finite scale.
struct StepScore {
  uint32_t step = 0;
  double score = 0;
};

/// What one method says about one case (schema "teller.answer/1", docs/reference/method-answer.md).
struct Answer {
  std::string name;  ///< the case's neutral one
  AnswerStatus status = AnswerStatus::kAbstained;
  double confidence = 0;              ///< that this answer is right, 0..1
  double threshold = 0.5;             ///< a step with this score or more is called abnormal
  std::vector<StepScore> steps;       ///< others are less suspect than all of these
  std::vector<Candidate> candidates;  ///< most suspect first
  std::optional<int64_t> wall_ns;     ///< time spent on this case
  std::optional<int64_t> peak_bytes;  ///< most memory in use
};

/// Errors: kNotFound, kBadFormat, kLimit, with the place in the file's object.
base::Result<Answer> ReadAnswer(const std::string& path);
nlohmann::ordered_json ToJson(const Answer& answer);

/// The same as one line; names that are no UTF-8 are made so.
std::string ToLine(const Answer& answer);

/// TELLER's own verdict as an answer: findings, and behind them suspects. "cannot tell" abstains.
Answer AnswerOf(const trace::Diagnosis& diagnosis, const std::string& name);

}  // namespace teller::score
