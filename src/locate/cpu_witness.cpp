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
constexpr double kFree = 0.15;            // processors that did nothing: one was free for whoever wanted it
constexpr double kFull = 0.05;            // share of the machine that is idle at most when it is full
constexpr double kOthers = 0.3;           // share of it that other programs have
constexpr Nanos kTouches = 150'000'000;   // by which samples may miss a stretch's ends
constexpr double kTick = 0.015;           // s: CPU times come in ticks
constexpr Nanos kWidest = 3'000'000'000;  // samples further apart say nothing about a moment

double Seconds(Nanos ns) {
  return static_cast<double>(ns) / 1e9;
}

}  // namespace

CpuWitness::CpuWitness(const trace::Store& store) {
  std::map<uint32_t, std::string> names;
  std::map<uint32_t, uint32_t> idle;  // series of idle time -> its file
  std::map<uint32_t, uint32_t> busy;
  for (uint32_t row = 0; row < store.counter_series.size(); ++row) {
    const trace::CounterSeries& series = store.counter_series[row];
    if (series.process_name.empty() && series.name == "idle_s") idle.emplace(row, series.file.value());
    if (series.process_name.empty() && series.name == "busy_s") busy.emplace(row, series.file.value());
    if (series.process_name.empty() || (series.name != "cpu_s" && series.name != "run_ns")) continue;
    names.emplace(row, series.process_name);
  }
  for (const trace::CounterSample& sample : store.counters) {
    if (!sample.series.valid() || sample.at == trace::kNoTime || !std::isfinite(sample.value)) continue;
    // One machine's: of several hosts it is not known which one a process runs on.
    if (idle.size() == 1 && idle.begin()->first == sample.series.value())
      idle_.samples.emplace_back(sample.at, sample.value);
    if (busy.size() == 1 && busy.begin()->first == sample.series.value())
      busy_.samples.emplace_back(sample.at, sample.value);
    const auto found = names.find(sample.series.value());
    if (found == names.end()) continue;
    const bool ns = store.counter_series[sample.series.value()].name == "run_ns";
    tracks_[found->second].samples.emplace_back(sample.at, ns ? sample.value / 1e9 : sample.value);
  }
  for (Track* track : {&idle_, &busy_}) {
    std::stable_sort(track->samples.begin(), track->samples.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
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

bool CpuWitness::Around(const Track& track, Nanos begin, Nanos end, std::pair<Nanos, double>& first,
                        std::pair<Nanos, double>& last) {
  const auto& samples = track.samples;
  const auto after = std::lower_bound(samples.begin(), samples.end(), end,
                                      [](const auto& sample, Nanos t) { return sample.first < t; });
  auto before = std::upper_bound(samples.begin(), samples.end(), begin,
                                 [](Nanos t, const auto& sample) { return t < sample.first; });
  if (end <= begin || before == samples.begin() || after == samples.end()) return false;
  first = *--before;
  last = *after;
  return last.second >= first.second && last.first > first.first && last.first - first.first <= kWidest + (end - begin);
}

bool CpuWitness::HadIdle(Nanos begin, Nanos end) const {
  std::pair<Nanos, double> first;
  std::pair<Nanos, double> last;
  return Around(idle_, begin, end, first, last) &&
         last.second - first.second >= kFree * Seconds(last.first - first.first);
}

bool CpuWitness::Near(const Track& track, Nanos begin, Nanos end, std::pair<Nanos, double>& first,
                      std::pair<Nanos, double>& last) {
  if (end <= begin || track.samples.empty()) return false;
  // A sample just inside says as much as one just outside.
  const auto nearest = [&](Nanos at) {
    auto it = std::lower_bound(track.samples.begin(), track.samples.end(), at,
                               [](const auto& sample, Nanos t) { return sample.first < t; });
    if (it == track.samples.end() || (it != track.samples.begin() && at - (it - 1)->first <= it->first - at)) --it;
    return it;
  };
  const auto from = nearest(begin);
  const auto to = nearest(end);
  const Nanos apart = std::max(std::abs(from->first - begin), std::abs(to->first - end));
  if (from >= to || apart > std::max((end - begin) / 4, kTouches)) return false;
  first = *from;
  last = *to;
  return true;
}

double CpuWitness::Grew(const Track& track, Nanos begin, Nanos end) {
  std::pair<Nanos, double> first;
  std::pair<Nanos, double> last;
  if (Near(track, begin, end, first, last) || Around(track, begin, end, first, last)) return last.second - first.second;
  return -1;
}

std::optional<CpuWitness::Window> CpuWitness::UsedNothing(const std::string& process, Nanos begin, Nanos end) const {
  constexpr double kLessThanATick = 0.005;  // s
  const auto found = tracks_.find(process);
  std::pair<Nanos, double> first;
  std::pair<Nanos, double> last;
  if (found == tracks_.end() || !Near(found->second, begin, end, first, last)) return std::nullopt;
  const double used = last.second - first.second;
  if (used < 0 || used > kLessThanATick || !HadIdle(first.first, last.first)) return std::nullopt;
  return Window(first.first, last.first);
}

bool CpuWitness::WasCrowded(Nanos begin, Nanos end) const {
  const double idle = Grew(idle_, begin, end);
  const double busy = Grew(busy_, begin, end);
  if (idle < 0 || busy <= 0 || tracks_.empty()) return false;
  double own = 0;
  for (const auto& [name, track] : tracks_) {
    const double used = Grew(track, begin, end);
    if (used < 0) return false;
    own += used;
  }
  return idle <= kFull * (busy + idle) && busy - own >= kOthers * (busy + idle);
}

double CpuWitness::Used(const std::string& process, Nanos begin, Nanos end) const {
  const auto found = tracks_.find(process);
  std::pair<Nanos, double> first;
  std::pair<Nanos, double> last;
  if (found == tracks_.end() || !Around(found->second, begin, end, first, last)) return -1;
  return (last.second - first.second) / Seconds(last.first - first.first);
}

CpuWitness::Use CpuWitness::During(const std::string& process, Nanos begin, Nanos end) const {
  const auto found = tracks_.find(process);
  std::pair<Nanos, double> first;
  std::pair<Nanos, double> last;
  if (found == tracks_.end() || !Around(found->second, begin, end, first, last)) return Use::kUnknown;
  const double length = Seconds(end - begin);
  const double used = last.second - first.second;
  const double outside = Seconds(last.first - first.first) - length;
  if (outside > kMostBeside * length) return Use::kUnknown;
  if (found->second.usual > 0) {
    // A process that always spins did so outside too.
    const double inside = used - outside * found->second.usual;
    if (inside <= kStill * length) return HadIdle(begin, end) ? Use::kStill : Use::kUnknown;
    return inside >= kWorking * length ? Use::kWorking : Use::kUnknown;
  }
  // Beside the stretch it may have been as busy as it sometimes is.
  const double least = std::max(0.0, used - outside * found->second.most) - kTick;
  if (least >= kWorking * length) return Use::kWorking;
  return used <= kIdle * length + kTick ? Use::kIdle : Use::kUnknown;
}

}  // namespace teller::locate
