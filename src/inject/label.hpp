#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/nanos.hpp"
#include "base/status.hpp"
#include "trace/fault_class.hpp"

namespace teller::inject {

using base::Nanos;

/// A stretch of time.
struct Interval {
  Nanos begin = 0;
  Nanos end = 0;
};

/// Who did it, as the injector knows. Empty members do not apply.
struct LabelCulprit {
  std::optional<int64_t> rank;
  std::string process;
  std::string layer;
  std::string op;
  std::string module;
  std::string function;
  std::string log_record;  ///< text of the line that names the cause
};

/// The truth about one case (`label.json`, schema "teller.label/1"; docs/reference/case.md). Times are epoch ns.
struct Label {
  bool is_fault = false;
  trace::FaultClass fault = trace::FaultClass::kUnknown;
  std::vector<trace::FaultClass> accepted;  ///< other classes that are right too
  std::string kind;                         ///< what the injector did
  std::string stack;
  int64_t world_size = 1;
  std::optional<LabelCulprit> culprit;
  std::vector<int64_t> accepted_ranks;
  std::vector<int64_t> victims;       ///< ranks; named processes are left out
  std::optional<Interval> window;     ///< in which the fault was injected; none for controls
  std::vector<Interval> activations;  ///< exact ones inside the window, where known
  std::optional<std::vector<std::string>>
      visible_in;  ///< trace, log, spans, metrics, host, requests; none = not judged
};

/// Reads a label. Every deviation from the form is one line of `problems`; the label holds what could be read.
/// Errors: kNotFound, kUnreadable, kBadFormat (no JSON object), kLimit (more than 4 MiB).
base::Result<Label> ReadLabel(const std::string& path, std::vector<std::string>& problems);

}  // namespace teller::inject
