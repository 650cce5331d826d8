#include "locate/observed.hpp"

namespace teller::locate {

namespace {

constexpr trace::Nanos kStampError = 1'000'000'000;  // many logs know whole seconds only

}  // namespace

Coverage ObservedTimes(const std::vector<trace::Note>& notes) {
  std::vector<std::pair<trace::Nanos, trace::Nanos>> times;
  for (const trace::Note& note : notes) {
    if (note.observer && note.begin != trace::kNoTime)
      times.emplace_back(note.begin - kStampError, note.end + kStampError);
  }
  return Coverage(std::move(times));
}

}  // namespace teller::locate
