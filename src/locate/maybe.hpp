#pragma once

namespace teller::locate {

/// What makes a claim doubtful gives it at least this probability of chance: above what a verdict may have, so that it
/// is a suspicion.
inline constexpr double kMaybe = 0.05;

}  // namespace teller::locate
