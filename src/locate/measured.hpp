#pragma once

#include <vector>

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// The scene of a run with all that it refers to but store and trees, which must outlive it.
struct Measured {
  Measured(const trace::Store& store, const trace::Trees& trees)
      : profiles(ProfileSteps(store, trees)),
        normals(FitNormals(trees, profiles)),
        witness(store),
        scene{store, trees, profiles, normals, &witness} {}
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

  std::vector<StepProfile> profiles;
  std::vector<StepNormal> normals;
  CpuWitness witness;
  Scene scene;
};

}  // namespace teller::locate
