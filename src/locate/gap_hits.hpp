#pragma once

#include <cstdint>
#include <vector>

namespace teller::locate {

/// A step whose gap is long, and by how much (ns, > 0).
struct GapHit {
  uint32_t step = 0;
  double lost = 0;
};

/// Of long gaps those that make up the trouble: the ones that are not small beside the typical lost nanosecond's gap. A
/// busy machine lengthens gaps here and there in the whole run; they must not hide where a fault begins and ends. All
/// of them where too few would stay to be told from chance. Order: as given.
std::vector<GapHit> MainHits(std::vector<GapHit> hits);

/// How much gaps differ: interquartile range over median; 0 for fewer than four.
double Spread(const std::vector<GapHit>& hits);

}  // namespace teller::locate
