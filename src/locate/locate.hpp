#pragma once

#include <cstddef>

#include "trace/diagnosis.hpp"
#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::locate {

struct LocateOptions {
  double false_alarms = 0.01;  ///< a finding is reported when its false-alarm probability is below this
  size_t most_suspects = 5;    ///< that are named beside the findings; nothing else depends on it
};

/// Everything abnormal in a run, first causes first; or that nothing is, or that it cannot be told.
/// Evidence ids and finding ids are numbered over the run. Pure: same input, same answer.
trace::Diagnosis Locate(const trace::Store& store, const trace::Trees& trees, const LocateOptions& options);

}  // namespace teller::locate
