#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "locate/cpu_witness.hpp"
#include "locate/normal.hpp"
#include "locate/profile.hpp"
#include "trace/diagnosis.hpp"

namespace teller::locate {

/// What kind of trouble a hypothesis claims.
enum class Trouble : uint8_t {
  kSlowOperator,  ///< one operator (at one place or everywhere) costs more, the rest does not
  kHostWork,      ///< host time at one place between operators grows, again and again
  kGapWork,       ///< the time between steps grows, again and again
  kPause,         ///< everything of a process stands still, once or a few times, at changing places
  kStarvation,    ///< everything of a process is stretched, nothing in particular
  kSlowDevice,    ///< all kernels of a process take longer, none in particular
  kSlowSave,      ///< saving its state took several times as long as at other times
  kSlowTransfer,  ///< collectives take long after the last rank has arrived
  kLateRank,      ///< one rank arrives last again and again (GPU lanes: no own time to look at)
};

/// A pause of a process inside of a collective: all had arrived, and it went on late. Steps do not show it as anybody's
/// own time.
struct InsidePause {
  uint32_t collective = 0;  ///< index into Trees::collectives
  uint32_t step = 0;        ///< of the process; index into Trees::steps
  Nanos lost = 0;
};

/// One claim about one process, with the steps it is made from.
struct Hypothesis {
  Trouble trouble = Trouble::kPause;
  trace::ProcessRow process;
  std::optional<int> rank;
  std::vector<uint32_t> steps;  ///< indices into Trees::steps, in order
  std::vector<Nanos> lost_in;   ///< parallel to steps: time lost to it
  Nanos lost = 0;
  Nanos onset = trace::kNoTime;
  Nanos end = trace::kNoTime;
  SlotKey slot;                     ///< operator or place; meaningful for the first three and pauses
  bool whole_operator = false;      ///< slow operator: all places of that name, not one
  bool in_gap = false;              ///< pause: between steps
  bool compares_ranks = false;      ///< known by how ranks differ
  bool throttled = false;           ///< pause: a quota's, by when its pieces end
  bool at_changing_places = false;  ///< of a quota's pieces
  std::vector<InsidePause> inside;  ///< pause: those of its steps in which it was inside of a collective, in order
  uint32_t span = kNoSpan;          ///< worst piece: operator, host frame, or kNoSpan
  Nanos worst_begin = trace::kNoTime;
  Nanos worst = 0;                    ///< its length
  Nanos usual = 0;                    ///< what is normal there
  double rest_ratio = 1;              ///< how much everything else in these steps is stretched
  double calls = 0;                   ///< slow operator that is called too often: so often in a step
  double usual_calls = 0;             ///< and so often by the other ranks
  bool even = false;                  ///< starvation: all of a step is stretched alike, not here and there
  double spread = 0;                  ///< long gaps: how much they differ, as a share of the typical one
  double false_alarm = 1;             ///< probability of as much by chance in a healthy run
  std::vector<uint32_t> collectives;  ///< indices into Trees::collectives (transfer, late rank)
  std::optional<int> peer;            ///< slow transfer: the link's other end; none when the link cannot be told
  bool both_ways = false;             ///< slow transfer: the rank is slow towards all of its neighbours
  bool sent = false;                  ///< slow transfer: what the rank sends to the peer; else collectives
  double link_share = 0;              ///< slow transfer: of its collectives that show the same ends
};

/// Everything the searches need, computed once.
struct Scene {
  const trace::Store& store;
  const trace::Trees& trees;
  const std::vector<StepProfile>& profiles;
  const std::vector<StepNormal>& normals;
  const CpuWitness* witness = nullptr;  ///< host counters; none when nobody asks them
};

/// Claims from comparing each process's steps with what is normal for them (down one stack).
std::vector<Hypothesis> SearchVertical(const Scene& scene);

/// Claims from comparing ranks in their collectives (across ranks).
std::vector<Hypothesis> SearchHorizontal(const Scene& scene);

}  // namespace teller::locate
