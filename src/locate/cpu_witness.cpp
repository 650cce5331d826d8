#include "locate/cpu_witness.hpp"

#include <algorithm>
#include <cmath>

#include "ml/robust.hpp"

namespace teller::locate {

namespace {

using trace::Nanos;

constexpr double kSpins = 0.8;          // processors that a spinning process uses in most intervals
constexpr double kMostIntervals = 0.4;  // quantile of its use: a run holds stretches without any work too
constexpr double kBusier = 0.8;         // quantile: what it may have used beside a stretch
constexpr size_t kLeastSamples = 6;
constexpr double kStill = 0.3;            // share of the stretch
constexpr double kWorking = 0.6;          // share of the stretch
constexpr double kMostBeside = 3;         // times the stretch: samples that lie further out say little about it
constexpr double kIdle = 0.2;             // share of the stretch
constexpr double kTick = 0.015;           // s: CPU times come in ticks
constexpr Nanos kWidest = 3'000'000'000;  // samples further apart say nothing about a moment

double Seconds(Nanos ns) {
  return static_cast<double>(ns) / 1e9;
}

}  // namespace

CpuWitness::CpuWitness(const trace::Store& store) {
  std::map<uint32_t, std::string> names;
  for (uint32_t row = 0; row < store.counter_series.size(); ++row) {
    const trace::CounterSeries& series = store.counter_series[row];
    if (series.process_name.empty() || (series.name != "cpu_s" && series.name != "run_ns")) continue;
    names.emplace(row, series.process_name);
  }
  for (const trace::CounterSample& sample : store.counters) {
    if (!sample.series.valid() || sample.at == trace::kNoTime || !std::isfinite(sample.value)) continue;
    const auto found = names.find(sample.series.value());
    if (found == names.end()) continue;
    const bool ns = store.counter_series[sample.series.value()].name == "run_ns";
    tracks_[found->second].samples.emplace_back(sample.at, ns ? sample.value / 1e9 : sample.value);
  }
  for (auto& [name, track] : tracks_) {
    std::stable_sort(track.samples.begin(), track.samples.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<double> rates;
    for (size_t i = 1; i < track.samples.size(); ++i) {
      const double time = Seconds(track.samples[i].first - track.samples[i - 1].first);
      const double used = track.samples[i].second - track.samples[i - 1].second;
      if (time > 0 && used >= 0) rates.push_back(used / time);
    }
    if (rates.size() < kLeastSamples) continue;
    const double usual = ml::Quantile(rates, kMostIntervals);
    track.usual = usual >= kSpins ? usual : 0;
    track.most = ml::Quantile(rates, kBusier);
  }
}

CpuWitness::Use CpuWitness::During(const std::string& process, Nanos begin, Nanos end) const {
  const auto found = tracks_.find(process);
  if (found == tracks_.end() || end <= begin) return Use::kUnknown;
  const auto& samples = found->second.samples;
  auto last = std::lower_bound(samples.begin(), samples.end(), end,
                               [](const auto& sample, Nanos t) { return sample.first < t; });
  auto first = std::upper_bound(samples.begin(), samples.end(), begin,
                                [](Nanos t, const auto& sample) { return t < sample.first; });
  if (first == samples.begin() || last == samples.end()) return Use::kUnknown;
  --first;
  const double length = Seconds(end - begin);
  const double covered = Seconds(last->first - first->first);
  const double used = last->second - first->second;
  if (used < 0 || last->first - first->first > kWidest + (end - begin)) return Use::kUnknown;
  const double outside = covered - length;
  if (outside > kMostBeside * length) return Use::kUnknown;
  // Beside the stretch it may have been as busy as it sometimes is.
  const double least = std::max(0.0, used - outside * found->second.most) - kTick;
  if (found->second.usual > 0) {
    // A process that always spins did so outside too.
    const double inside = used - outside * found->second.usual;
    if (inside <= kStill * length) return Use::kStill;
    if (inside >= kWorking * length) return Use::kWorking;
    return Use::kUnknown;
  }
  if (least >= kWorking * length) return Use::kWorking;
  if (used <= kIdle * length + kTick) return Use::kIdle;
  return Use::kUnknown;
}

}  // namespace teller::locate
