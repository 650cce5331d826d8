#include "score/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

namespace teller::score {

namespace {

/// Of steps that an answer does not name: below every score that one can have.
constexpr double kUnnamed = std::numeric_limits<double>::lowest();

std::string Letters(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  }
  return out;
}

/// Place of the first candidate that fits, 0 when none does.
template <class Fits>
Place FirstPlace(const std::vector<Candidate>& candidates, Fits fits) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (fits(candidates[i])) return static_cast<Place>(i + 1);
  }
  return 0;
}

class Comparison {
 public:
  Comparison(const Truth& truth, const Answer* answer) : truth_(truth), label_(truth.label), answer_(answer) {
    // Also of a case that is called normal: whom a method suspects most is asked apart from whether it raises an alarm.
    if (answer != nullptr && answer->status != AnswerStatus::kAbstained) candidates_ = answer->candidates;
    for (const int64_t rank : label_.accepted_ranks) ranks_.push_back(rank);
    if (ranks_.empty() && label_.culprit && label_.culprit->rank) ranks_.push_back(*label_.culprit->rank);
  }

  Judged Compare() {
    out_.answered = answer_ != nullptr;
    if (answer_ != nullptr) {
      out_.abstained = answer_->status == AnswerStatus::kAbstained;
      out_.flagged = answer_->status == AnswerStatus::kAbnormal;
      out_.confidence = answer_->confidence;
      out_.wall_ns = answer_->wall_ns;
      out_.peak_bytes = answer_->peak_bytes;
    }
    Classes();
    if (label_.is_fault) Places();
    JudgeCandidates();
    FindLoss();
    out_.right = out_.loss.empty();
    return std::move(out_);
  }

 private:
  void Classes() {
    const std::string calm(trace::Name(trace::FaultClass::kNotAFault));
    out_.true_class = label_.is_fault ? std::string(trace::Name(label_.fault)) : calm;
    if (answer_ == nullptr || out_.abstained) return;
    out_.said_class = !out_.flagged ? calm : candidates_.empty() ? "" : candidates_.front().fault_class;
    out_.counted_class = Accepted(out_.said_class) ? out_.true_class : out_.said_class;
  }

  bool Accepted(const std::string& name) const {
    if (!label_.is_fault) return name == trace::Name(trace::FaultClass::kNotAFault);
    if (name == trace::Name(label_.fault)) return true;
    return std::any_of(label_.accepted.begin(), label_.accepted.end(),
                       [&](trace::FaultClass fault) { return name == trace::Name(fault); });
  }

  bool RightRank(const Candidate& c) const {
    return c.rank && std::find(ranks_.begin(), ranks_.end(), *c.rank) != ranks_.end();
  }
  bool RightProcess(const Candidate& c) const { return SameName(c.process, label_.culprit->process); }
  bool RightOp(const Candidate& c) const {
    return std::any_of(truth_.accepted_ops.begin(), truth_.accepted_ops.end(),
                       [&](const std::string& name) { return SameName(c.op, name) || SameName(c.module, name); });
  }

  void Places() {
    if (!truth_.accepted_ops.empty()) {
      out_.op_place = FirstPlace(candidates_, [&](const Candidate& c) { return RightOp(c); });
    }
    // A rank says something only among several of which not all are right.
    if (label_.world_size > 1 && !ranks_.empty() && ranks_.size() < static_cast<size_t>(label_.world_size)) {
      out_.rank_place = FirstPlace(candidates_, [&](const Candidate& c) { return RightRank(c); });
    }
    if (label_.culprit && !label_.culprit->process.empty()) {
      out_.process_place = FirstPlace(candidates_, [&](const Candidate& c) { return RightProcess(c); });
    }
    if (label_.culprit && !label_.culprit->log_record.empty()) {
      out_.line_place = FirstPlace(
          candidates_, [&](const Candidate& c) { return SameName(c.log_record, label_.culprit->log_record); });
    }
  }

  void JudgeCandidates() {
    for (const Candidate& c : out_.flagged ? candidates_ : std::vector<Candidate>()) {
      if (c.below_threshold) continue;
      bool right = label_.is_fault;
      if (out_.rank_place) right &= RightRank(c);
      if (!out_.rank_place && out_.process_place) right &= RightProcess(c);
      if (out_.op_place) right &= RightOp(c);
      out_.candidates.push_back({.right_place = right, .saved_share = c.saved_share});
    }
  }

  void FindLoss() {
    out_.loss_what = label_.is_fault ? out_.true_class : label_.kind;
    if (answer_ == nullptr) {
      out_.loss = "no answer";
    } else if (out_.abstained) {
      out_.loss = "abstained";
    } else if (!label_.is_fault) {
      if (out_.flagged) out_.loss = "false alarm";
    } else if (!out_.flagged) {
      out_.loss = "missed";
    } else if (!Accepted(out_.said_class)) {
      out_.loss = "wrong class";
      out_.loss_what += " called " + (out_.said_class.empty() ? "nothing" : out_.said_class);
    } else if (out_.rank_place && out_.rank_place != 1) {
      out_.loss = "wrong rank";
    } else if (!out_.rank_place && out_.process_place && out_.process_place != 1) {
      out_.loss = "wrong process";
    } else if (out_.op_place && out_.op_place != 1) {
      out_.loss = "wrong operator";
    }
  }

  const Truth& truth_;
  const inject::Label& label_;
  const Answer* answer_;
  std::vector<Candidate> candidates_;
  std::vector<int64_t> ranks_;
  Judged out_;
};

std::vector<JobStep> JobSteps(const Truth& truth, const std::vector<ReadStep>& steps, const Answer* answer) {
  struct Row {
    JobStep step{.score = kUnnamed};
    bool ignored = false;
  };
  const std::vector<StepTruth> verdicts = JudgeSteps(truth, steps);
  std::vector<double> scores(steps.size(), kUnnamed);
  std::vector<bool> named(steps.size(), false);
  if (answer != nullptr && answer->status != AnswerStatus::kAbstained) {
    for (const StepScore& s : answer->steps) {
      if (s.step >= steps.size()) continue;
      scores[s.step] = named[s.step] ? std::max(scores[s.step], s.score) : s.score;
      named[s.step] = true;
    }
  }
  // In a run of one rank, processes with steps of their own stay apart by their order.
  std::map<std::pair<int64_t, uint32_t>, Row> rows;
  const bool joined = truth.label.world_size > 1;
  int64_t stretch = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    if (!joined && s > 0 && steps[s].index <= steps[s - 1].index) ++stretch;
    Row& row = rows[{joined ? 0 : stretch, steps[s].index}];
    row.ignored |= verdicts[s] == StepTruth::kIgnored;
    row.step.abnormal |= verdicts[s] == StepTruth::kAbnormal;
    row.step.score = std::max(row.step.score, scores[s]);
    row.step.flagged |= answer != nullptr && named[s] && scores[s] >= answer->threshold;
  }
  std::vector<JobStep> out;
  for (const auto& [key, row] : rows) {
    if (row.step.abnormal || !row.ignored) out.push_back(row.step);
  }
  return out;
}

}  // namespace

bool SameName(const std::string& a, const std::string& b) {
  const std::string x = Letters(a);
  const std::string y = Letters(b);
  if (std::min(x.size(), y.size()) < 3) return !x.empty() && x == y;
  return x.find(y) != std::string::npos || y.find(x) != std::string::npos;
}

Judged Judge(const Truth& truth, const std::vector<ReadStep>& steps, const Answer* answer) {
  Judged out = Comparison(truth, answer).Compare();
  out.steps = JobSteps(truth, steps, answer);
  out.effect = !truth.label.is_fault ? "controls" : EffectOf(steps, JudgeSteps(truth, steps));
  const auto& all = out.steps;
  const bool told = std::any_of(all.begin(), all.end(), [](const JobStep& step) { return step.abnormal; });
  const bool hit = std::any_of(all.begin(), all.end(), [](const JobStep& s) { return s.abnormal && s.flagged; });
  if (out.right && told && !hit) out.loss = "wrong step";
  return out;
}

}  // namespace teller::score
