#include "locate/arrival_delay.hpp"

#include <algorithm>
#include <vector>

#include "ml/robust.hpp"

namespace teller::locate {

namespace {

using trace::Nanos;
using trace::PhaseKind;
using trace::Request;

constexpr Nanos kMs = 1'000'000;
constexpr Nanos kLeast = 60 * kMs;
constexpr double kTimesUsual = 15;
constexpr Nanos kUsualFloor = 2 * kMs;
constexpr Nanos kTouch = 30 * kMs;   // one may begin this much before the one before it is through
constexpr size_t kFewest = 3;        // requests of about the same wait
constexpr double kMostApart = 0.15;  // of the longest: by which their waits differ
constexpr double kMostApartOfTwo = 0.01;
constexpr size_t kLeastRequests = 6;  // to know what is usual

struct Wait {
  uint32_t request = 0;
  Nanos arrival = 0;
  Nanos lost = 0;
  double per_token = 0;
  bool is_long = false;
};

/// True when all of [first, last) waits differ by little.
template <class Of>
bool Alike(const std::vector<Wait>& waits, size_t first, size_t last, Of of) {
  double least = of(waits[first]);
  double most = least;
  for (size_t i = first; i < last; ++i) {
    least = std::min(least, of(waits[i]));
    most = std::max(most, of(waits[i]));
  }
  // Chance cuts n waits to within a share p of each other in about p^(n - 1) of cases.
  const double apart = last - first >= kFewest ? kMostApart : kMostApartOfTwo;
  return most > 0 && least >= (1 - apart) * most;
}

std::vector<Wait> Waits(const trace::Trees& trees) {
  std::vector<Wait> waits;
  std::vector<double> lengths;
  for (uint32_t r = 0; r < trees.requests.size(); ++r) {
    const Request& request = trees.requests[r];
    const bool pinned = !request.steps.empty() && request.steps.front().prefill;
    // Without any step the wait may lie behind the engine as well: the front end's it is either way.
    if (request.failed || request.arrival == trace::kNoTime || (!pinned && !trees.steps.empty())) continue;
    const Nanos lost = request.phase(PhaseKind::kFrontEnd);
    const auto tokens = static_cast<double>(std::max<int64_t>(1, request.prompt_tokens));
    waits.push_back({r, request.arrival, lost, static_cast<double>(lost) / tokens, false});
    lengths.push_back(static_cast<double>(lost));
  }
  if (waits.size() < kLeastRequests) return {};
  const double usual = std::max(ml::Quantile(lengths, 0.4), static_cast<double>(kUsualFloor));
  for (Wait& wait : waits) wait.is_long = wait.lost >= kLeast && static_cast<double>(wait.lost) >= kTimesUsual * usual;
  std::stable_sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) { return a.arrival < b.arrival; });
  return waits;
}

}  // namespace

std::map<uint32_t, Nanos> OwnDelays(const trace::Trees& trees) {
  const std::vector<Wait> waits = Waits(trees);
  std::map<uint32_t, Nanos> own;
  for (size_t first = 0; first < waits.size();) {
    size_t last = first;
    while (last < waits.size() && waits[last].is_long &&
           (last == first || waits[last].arrival >= waits[last - 1].arrival + waits[last - 1].lost - kTouch)) {
      ++last;
    }
    const bool alike =
        last - first >= 2 && (Alike(waits, first, last, [](const Wait& w) { return static_cast<double>(w.lost); }) ||
                              Alike(waits, first, last, [](const Wait& w) { return w.per_token; }));
    for (size_t i = first; alike && i < last; ++i) own[waits[i].request] = waits[i].lost;
    first = std::max(last, first + 1);
  }
  return own;
}

}  // namespace teller::locate
