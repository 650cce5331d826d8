#include "locate/parts.hpp"

#include <cmath>

#include "ml/robust.hpp"

namespace teller::locate {

namespace {

constexpr double kBroad = 0.6;  // of the normal time is in parts that are stretched
constexpr double kEven = 0.15;  // that parts differ more than usual and still are stretched alike

double TypicalSpread(const std::vector<Parts>& steps) {
  std::vector<double> spreads;
  for (const Parts& parts : steps) {
    std::vector<double> logs;
    for (const Cost& part : parts) {
      if (part.took > 0 && part.expected > 0) logs.push_back(std::log(part.took / part.expected));
    }
    spreads.push_back(ml::RobustScale(logs));
  }
  return ml::Quantile(spreads, 0.5);
}

}  // namespace

bool AreBroad(const std::vector<Parts>& steps, double factor) {
  const double least = std::sqrt(factor);
  double all = 0;
  double stretched = 0;
  for (const Parts& parts : steps) {
    for (const Cost& part : parts) {
      all += part.expected;
      if (part.took >= least * part.expected) stretched += part.expected;
    }
  }
  return stretched >= kBroad * all;
}

bool AreStretchedAlike(const std::vector<Parts>& steps, const std::vector<Parts>& others) {
  return TypicalSpread(steps) <= TypicalSpread(others) + kEven;
}

}  // namespace teller::locate
