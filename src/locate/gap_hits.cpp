#include "locate/gap_hits.hpp"

#include <algorithm>

#include "ml/robust.hpp"

namespace teller::locate {

namespace {

constexpr double kSmall = 0.35;  // of the gap that the typical lost nanosecond lies in
constexpr size_t kFewestMain = 8;
constexpr size_t kFewestEqual = 5;  // where they hardly differ
constexpr double kEqual = 0.3;      // spread

}  // namespace

std::vector<GapHit> MainHits(std::vector<GapHit> hits) {
  std::vector<double> lost;
  double all = 0;
  for (const GapHit& hit : hits) {
    lost.push_back(hit.lost);
    all += hit.lost;
  }
  std::sort(lost.begin(), lost.end());
  double seen = 0;
  double middle = 0;
  for (const double one : lost) {
    seen += one;
    middle = one;
    if (2 * seen >= all) break;
  }
  std::vector<GapHit> main;
  for (const GapHit& hit : hits) {
    if (hit.lost >= kSmall * middle) main.push_back(hit);
  }
  const bool equal = main.size() >= kFewestEqual && Spread(main) <= kEqual;
  return main.size() >= kFewestMain || equal ? main : hits;
}

double Spread(const std::vector<GapHit>& hits) {
  if (hits.size() < 4) return 0;
  std::vector<double> lost;
  for (const GapHit& hit : hits) lost.push_back(hit.lost);
  const double median = ml::Quantile(lost, 0.5);
  return median > 0 ? (ml::Quantile(lost, 0.75) - ml::Quantile(lost, 0.25)) / median : 0;
}

}  // namespace teller::locate
