#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// Processor time of named processes (host counters `cpu_s` and `run_ns`), asked about stretches of time in which
/// something stood still. Engine processes that wait for each other spin, so a process that used nothing while it
/// usually spins was stopped, and one that computed all the while was not. On a full machine the first does not hold:
/// who spins gives way to whoever computes.
class CpuWitness {
 public:
  explicit CpuWitness(const trace::Store& store);

  /// What a process did in a stretch of time, as far as samples about it tell.
  enum class Use : uint8_t {
    kUnknown = 0,
    kStill,    ///< it used far less than it always does, also when it waits, and a processor was free
    kWorking,  ///< it computed for most of the time
    kIdle,     ///< it used next to nothing; it may have had nothing to do
  };

  /// `process` as the host counters name it; [begin, end) in epoch ns. Samples lie apart, so short stretches are
  /// unknown.
  Use During(const std::string& process, trace::Nanos begin, trace::Nanos end) const;

  /// Processors that it used on average over the samples around [begin, end); -1 where they do not tell.
  double Used(const std::string& process, trace::Nanos begin, trace::Nanos end) const;

  using Window = std::pair<trace::Nanos, trace::Nanos>;

  /// The stretch between the samples closest to both ends of [begin, end), where it used not even a tick in it while a
  /// processor was free; none otherwise. It may be shorter or longer than [begin, end): ask it of what it covers only.
  std::optional<Window> UsedNothing(const std::string& process, trace::Nanos begin, trace::Nanos end) const;

  /// True when no processor was idle around [begin, end) and programs beside the named processes had a good part of
  /// them: who wanted one may have had to wait.
  bool WasCrowded(trace::Nanos begin, trace::Nanos end) const;

 private:
  struct Track {
    std::vector<std::pair<trace::Nanos, double>> samples;  ///< time, seconds used since its start; order: by time
    double usual = 0;  ///< processors that it uses nearly always; 0 when it does not spin
    double most = 1;   ///< that it uses in its busier intervals
  };
  /// The samples around [begin, end) of a track: first and last; none when they do not enclose it.
  static bool Around(const Track& track, trace::Nanos begin, trace::Nanos end, std::pair<trace::Nanos, double>& first,
                     std::pair<trace::Nanos, double>& last);
  /// The samples next to `begin` and `end`, where both are close to them and differ.
  static bool Near(const Track& track, trace::Nanos begin, trace::Nanos end, std::pair<trace::Nanos, double>& first,
                   std::pair<trace::Nanos, double>& last);
  /// By how much a track grew between the samples next to `begin` and `end`, else those around; -1 where none are.
  static double Grew(const Track& track, trace::Nanos begin, trace::Nanos end);
  bool HadIdle(trace::Nanos begin, trace::Nanos end) const;

  std::map<std::string, Track> tracks_;
  Track idle_;  ///< of the machine: seconds that processors did nothing
  Track busy_;  ///< of the machine: seconds that they worked
};

}  // namespace teller::locate
