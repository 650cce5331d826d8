#pragma once

#include <map>
#include <vector>

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// Bytes that each process copies from its devices to the host, over time.
class HostCopies {
 public:
  explicit HostCopies(const trace::Store& store);

  /// Of copies that begin in [begin, end).
  int64_t Between(uint32_t process, Nanos begin, Nanos end) const;

 private:
  struct Copy {
    Nanos begin = 0;
    int64_t bytes = 0;
  };
  std::map<uint32_t, std::vector<Copy>> by_process_;  ///< in order of time
};

/// A gap between steps in which a process copies so much to the host is no standstill: it saves its state, or hands it
/// on.
inline constexpr int64_t kLeastSaved = 16 << 20;

/// Saves that take several times as long as every other one of about as many bytes: what is written to is slow.
std::vector<Hypothesis> SearchSlowSaves(const Scene& scene);

/// Notes which steps come after a save, so that nobody wonders about the gap.
void NoteSaves(const Scene& scene, const std::vector<Hypothesis>& claims, std::vector<trace::Note>& notes);

}  // namespace teller::locate
