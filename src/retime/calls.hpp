#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"
#include "retime/replay.hpp"

namespace teller::retime {

/// The calls of one operator in one step, outermost ones, in order of time.
struct StepCalls {
  uint32_t step = 0;  ///< index into Trees::steps
  std::vector<trace::SpanRow> calls;
  trace::Nanos total = 0;
};

/// Finds what ran in a step: spans of its process that begin in it, and GPU work that was launched in it.
/// Lifetime: refers to its arguments. Threads: immutable.
class CallFinder {
 public:
  CallFinder(const trace::Store& store, const trace::Trees& trees);

  /// The one name in these steps that is `text`, or has it as a part. Errors: kNotFound, with what there is instead.
  base::Result<base::StringId> FindName(const std::vector<uint32_t>& steps, const std::string& text) const;
  StepCalls CallsIn(uint32_t step, base::StringId name) const;
  /// Scales a call and the GPU work that it launched, directly or in what it called.
  void Scale(trace::SpanRow call, double factor, Changes& changes) const;

 private:
  /// GPU work, by the call that launched it.
  struct Launched {
    trace::SpanRow launch;
    trace::SpanRow work;
  };
  std::vector<Launched>::const_iterator FirstLaunch(trace::SpanRow from) const;
  template <class Visit>
  void ForEachIn(uint32_t step, Visit visit) const;
  bool Counts(uint32_t row) const;

  const trace::Store& store_;
  const trace::Trees& trees_;
  const trace::Spans& spans_;
  std::vector<Launched> launched_;  ///< order: by launch
};

}  // namespace teller::retime
