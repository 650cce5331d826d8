#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "locate/log_incident.hpp"
#include "locate/log_text.hpp"
#include "locate/maybe.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

using trace::FaultClass;
using trace::Finding;

namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kMB = 1e6;
constexpr size_t kFewestLoads = 3;
constexpr double kTimesOthers = 3;   // that one rank loads longer
constexpr double kLeastLoad = 30;    // s by which it does
constexpr double kLeastSize = kGiB;  // below, opening files and building modules is most of the time
constexpr double kLeastSeconds = 60;
constexpr double kSlowest = 50 * kMB;  // bytes/s: half of what one spinning disk or a gigabit of network brings
constexpr double kMostNumber = 1e7;
constexpr int kNotTold = -1;  // the rank of a server with one rank

/// Weights that one rank read.
struct Load {
  size_t row = 0;
  double seconds = 0;
  double bytes = 0;  ///< that it keeps of them; 0 = not told
};

/// The number behind `mark`; nothing where there is none or it cannot be meant.
std::optional<double> NumberBehind(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string rest(text.substr(at + mark.size(), 24));
  char* end = nullptr;
  const double value = std::strtod(rest.c_str(), &end);
  if (end == rest.c_str() || !std::isfinite(value) || value < 0 || value > kMostNumber) return std::nullopt;
  return value;
}

class Loads {
 public:
  Loads(const trace::Store& store, const LogFacts& facts, LogCauses& out) : store_(store), facts_(facts), out_(out) {}

  void Run() {
    for (const size_t row : facts_.order) {
      const std::string_view text = FirstLine(store_.logs[row].message);
      // At the begin of a message: what a client asked may hold the same words.
      const bool told = Begins(text, "Loading weights took ") || Begins(text, "Load weight end. elapsed=") ||
                        Begins(text, "Model loading took ") || Begins(text, "model loading took ");
      if (!told) continue;
      std::vector<Load>& mine = by_rank_[RankOf(store_, facts_, row).value_or(kNotTold)];
      if (const auto seconds = NumberBehind(text, "Loading weights took ")) {
        mine.push_back({row, *seconds, 0});  // vLLM, which tells the size in a line of its own
      } else if (const auto elapsed = NumberBehind(text, "Load weight end. elapsed=")) {
        mine.push_back({row, *elapsed, NumberBehind(text, "mem usage=").value_or(0) * kGiB});  // SGLang
      } else if (const auto size = NumberBehind(text, "odel loading took ");
                 size && !mine.empty() && mine.back().bytes == 0) {
        mine.back().bytes = *size * kGiB;
      }
    }
    size_t rounds = 0;
    for (const auto& [rank, loads] : by_rank_) rounds = std::max(rounds, loads.size());
    for (size_t round = 0; round < rounds; ++round) {
      if (Uneven(round) || Slow(round)) return;
    }
  }

 private:
  std::vector<std::pair<int, Load>> Round(size_t round) const {
    std::vector<std::pair<int, Load>> loads;
    for (const auto& [rank, mine] : by_rank_) {
      if (round < mine.size()) loads.emplace_back(rank, mine[round]);
    }
    return loads;
  }

  static std::pair<int, Load> Longest(const std::vector<std::pair<int, Load>>& ranks) {
    return *std::max_element(ranks.begin(), ranks.end(),
                             [](const auto& a, const auto& b) { return a.second.seconds < b.second.seconds; });
  }

  /// Ranks load parts of the same weights: one that takes several times as long, also for each byte where all tell how
  /// many they keep, has slower storage.
  bool Uneven(size_t round) {
    auto ranks = Round(round);
    std::erase_if(ranks, [](const auto& entry) { return entry.first == kNotTold; });
    if (ranks.size() < kFewestLoads) return false;
    std::vector<double> seconds;
    std::vector<double> by_byte;
    for (const auto& [rank, load] : ranks) {
      seconds.push_back(load.seconds);
      if (load.bytes > 0) by_byte.push_back(load.seconds / load.bytes);
    }
    const double usual = ml::Quantile(seconds, 0.5);
    const auto [rank, worst] = Longest(ranks);
    if (worst.seconds < kTimesOthers * usual || worst.seconds < usual + kLeastLoad) return false;
    const bool sized = by_byte.size() == ranks.size();
    if (sized && worst.seconds / worst.bytes < kTimesOthers * ml::Quantile(by_byte, 0.5)) return false;
    Finding finding = Start(worst);
    finding.view = "horizontal";
    finding.culprit.rank = rank;
    finding.explanation = fmt::format(
        "Rank {} took {:.0f} s to load its weights where {:.0f} s is usual for its peers [E1]: it reads them from "
        "slower storage or over a slower path.",
        rank, worst.seconds, usual);
    Publish(std::move(finding), 4e-3);
    return true;
  }

  /// All together read more slowly than any storage that weights are kept on, by what they keep of them. Suspected, no
  /// more: what is quantized, kept in the host's memory or downloaded meanwhile, and what ranks without a line read, is
  /// not known.
  bool Slow(size_t round) {
    const auto ranks = Round(round);
    if (ranks.empty()) return false;
    double bytes = 0;
    for (const auto& [rank, load] : ranks) {
      if (load.bytes <= 0) return false;
      bytes += load.bytes;
    }
    // A rank that wrote nothing may have read as much as the others did.
    const auto told = static_cast<double>(ranks.size());
    bytes *= std::max(told, static_cast<double>(facts_.world_size)) / told;
    const Load worst = Longest(ranks).second;
    if (bytes < kLeastSize || worst.seconds < kLeastSeconds || bytes >= kSlowest * worst.seconds) return false;
    Finding finding = Start(worst);
    finding.view = "vertical";
    finding.culprit.rank.reset();
    finding.culprit.process.clear();
    finding.explanation = fmt::format(
        "Weights of {:.1f} GiB took {:.0f} s to load, {:.0f} MB/s [E1]: less than one disk or a network of 1 Gbit/s "
        "brings. The storage that they are on, or the path to it, may be slow.",
        bytes / kGiB, worst.seconds, bytes / worst.seconds / kMB);
    // Weights may be fetched, quantized or kept elsewhere meanwhile.
    Publish(std::move(finding), kMaybe);
    return true;
  }

  Finding Start(const Load& load) const {
    Finding finding;
    finding.fault = FaultClass::kStorageSlow;
    Signal signal;
    signal.row = load.row;
    signal.own_word = true;
    finding.culprit = CulpritOf(store_, facts_, signal);
    finding.culprit.layer = "storage";
    finding.end = store_.logs[load.row].at;
    finding.onset = finding.end;
    if (finding.end != trace::kNoTime) finding.onset -= static_cast<trace::Nanos>(load.seconds * 1e9);
    AddEvidence(finding, store_, load.row);
    return finding;
  }

  void Publish(Finding finding, double false_alarm) {
    finding.false_alarm_probability = false_alarm;
    finding.score = ScoreOf(false_alarm);
    out_.findings.push_back(std::move(finding));
  }

  const trace::Store& store_;
  const LogFacts& facts_;
  LogCauses& out_;
  std::map<int, std::vector<Load>> by_rank_;  ///< order: by time
};

}  // namespace

void FindSlowLoads(const trace::Store& store, const LogFacts& facts, LogCauses& out) {
  Loads(store, facts, out).Run();
}

}  // namespace teller::locate
