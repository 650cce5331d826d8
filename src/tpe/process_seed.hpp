#pragma once

#include <cstdint>
#include <random>

namespace teller::tpe {

/// A number that differs from process to process, for hash tables over words that come from files: no file can be made
/// whose words collide. Results never depend on it.
inline uint64_t ProcessSeed() {
  static const uint64_t seed = [] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  return seed;
}

}  // namespace teller::tpe
