#include "tree/build.hpp"

#include "tree/collectives.hpp"
#include "tree/launch.hpp"
#include "tree/nesting.hpp"
#include "tree/steps.hpp"

namespace teller::tree {

trace::Trees Build(trace::Store& store, unsigned threads) {
  trace::Trees trees;
  Nest(store, threads);
  LinkLaunches(store, trees);
  trees.steps = FindSteps(store);
  MatchCollectives(store, trees);
  return trees;
}

}  // namespace teller::tree
