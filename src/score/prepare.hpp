#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"
#include "score/answer.hpp"
#include "score/truth.hpp"

namespace teller::score {

/// How the copies of cases are made and read.
struct PrepareOptions {
  std::string work;          ///< folder for copies ("cases") and features ("features")
  std::string answers;       ///< folder for TELLER's own answers; empty = not asked
  unsigned workers = 0;      ///< cases at once; 0 = one per core
  unsigned timeout_s = 0;    ///< seconds for one case; 0 = no bound
  uint64_t memory = 0;       ///< bytes of address space for one case; 0 = no bound
  bool keep_copies = false;  ///< for outside methods; else inputs are only linked, as nobody but TELLER sees them
  bool steps_only = false;   ///< features stop behind the steps: nobody else reads them
};

/// One case as the methods get it.
struct Prepared {
  std::string name;     ///< neutral: says nothing about the case or the order of cases
  std::string problem;  ///< why it could not be read; empty when it was
  std::vector<ReadStep> steps;
};

/// Names for that many cases, dealt out by the seed.
std::vector<std::string> NeutralNames(size_t count, uint64_t seed);

/// Copies the inputs of every case under its neutral name, reads them and writes their features; asks TELLER when
/// wanted. Each case in a process of its own: a crash or a hang costs one answer, and time and memory are its own.
/// The calling process must have one thread. Errors: kUnreadable (no space, no process).
base::Result<std::vector<Prepared>> PrepareCases(const std::vector<Truth>& cases, const std::vector<std::string>& names,
                                                 const PrepareOptions& options);

/// The same of cases whose features an earlier run left in `work`.
std::vector<Prepared> PreparedBefore(const std::vector<std::string>& names, const std::string& work);

}  // namespace teller::score
