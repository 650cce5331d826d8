#include "locate/log_incident.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/nanos.hpp"
#include "locate/log_text.hpp"

namespace teller::locate {

using base::kSecond;
using trace::FaultClass;
using trace::Finding;
using trace::LogLevel;
using trace::LogRecord;
using trace::LogSource;
using trace::Nanos;

namespace {

constexpr Nanos kConsequence = 10 * kSecond;  // an exception that kills is followed by somebody's complaint this soon
constexpr Nanos kSpecific = 5 * kSecond;      // a cause written this much after the first complaint still explains it
constexpr Nanos kKernelReach = 60 * kSecond;  // the same for kernel lines, whose clock may differ a little
constexpr Nanos kApart = 1800 * kSecond;      // causes further apart are incidents of their own
constexpr size_t kNormalAfter = 5;            // records after which a process is thought to live on
constexpr size_t kLastWords = 2;              // records a dying process may still write
constexpr size_t kVictims = 8;
constexpr size_t kDevices = 256;  // findings; more devices than any host has
constexpr size_t kNotes = 3;
constexpr int kMostRanks = 4096;  // a larger world size is not believed

bool Fatal(SignalRole role) {
  return role == SignalRole::kCause || role == SignalRole::kException || role == SignalRole::kDeath ||
         role == SignalRole::kPeerLost || role == SignalRole::kTimeout;
}

/// Preference among what was said at about the same time: what names a cause, then who died, then who waited for it.
int Vagueness(SignalRole role) {
  switch (role) {
    case SignalRole::kCause: return 0;
    case SignalRole::kException:
    case SignalRole::kDeath: return 1;
    case SignalRole::kTimeout: return 2;
    default: return 3;
  }
}

constexpr size_t kMaxTracebacks = 256;  // looked at for consequences; a flood of tracebacks is request noise
constexpr size_t kMaxEnds = 256;        // starts and shutdowns kept per file

class Incidents {
 public:
  Incidents(const trace::Store& store, const LogFacts& facts, const std::vector<Signal>& signals, LogCauses& out)
      : store_(store), facts_(facts), signals_(signals), out_(out), first_finding_(out.findings.size()) {}

  void Run() {
    MarkShutdowns();
    std::vector<const Signal*> active;
    size_t tracebacks = 0;
    for (const Signal& s : signals_) {
      if (!Fatal(s.role) && s.role != SignalRole::kSymptom && s.role != SignalRole::kStart) continue;
      if (Suppressed(s)) {
        if (s.role != SignalRole::kStart) suppressed_.push_back(&s);
        continue;
      }
      if (s.role == SignalRole::kException && (++tracebacks > kMaxTracebacks || !Confirmed(s))) {
        unconfirmed_.push_back(&s);
        continue;
      }
      active.push_back(&s);
    }
    Group(active);
    WriteNotes();
  }

 private:
  Nanos At(const Signal& s) const { return store_.logs[s.row].at; }
  const LogRecord& Record(const Signal& s) const { return store_.logs[s.row]; }

  /// First request to end per file, and when the file's service started again.
  void MarkShutdowns() {
    for (const Signal& s : signals_) {
      const uint32_t file = Record(s).file.value();
      if (ends_[file].size() >= kMaxEnds) continue;
      if (s.role == SignalRole::kShutdown) ends_[file].push_back({facts_.place[s.row], true, At(s)});
      if (s.role == SignalRole::kStart) ends_[file].push_back({facts_.place[s.row], false, At(s)});
    }
  }

  /// True when the record is a consequence of an orderly end: after one in its own file, or a complaint about others
  /// soon after one elsewhere. Errors before it stay, also when they caused it.
  bool Suppressed(const Signal& s) const {
    if (Record(s).source == LogSource::kKernel || s.role == SignalRole::kStart) return false;
    const size_t here = facts_.place[s.row];
    bool ended = false;
    if (const auto it = ends_.find(Record(s).file.value()); it != ends_.end()) {
      for (const End& end : it->second) {
        if (end.place < here) ended = end.shutdown;
      }
    }
    if (ended) return true;
    // A rank that breaks off in mid-work because another one left is a fault also when that one left in order.
    if (s.role == SignalRole::kCause || s.role == SignalRole::kPeerLost) return false;
    for (const auto& [file, ends] : ends_) {
      for (const End& end : ends) {
        if (end.shutdown && end.place < here && end.at != trace::kNoTime && At(s) - end.at < 60 * kSecond) return true;
      }
    }
    return false;
  }

  /// Records of normal work that the writer of `s` still produced before place `until`.
  size_t NormalAfter(const Signal& s, size_t until) const {
    const LogRecord& own = Record(s);
    size_t normal = 0;
    for (size_t i = facts_.place[s.row] + 1; i < until && normal <= kNormalAfter; ++i) {
      const LogRecord& r = store_.logs[facts_.order[i]];
      if (r.file != own.file || (own.pid && r.pid != own.pid) || (own.rank && r.rank && r.rank != own.rank)) continue;
      const bool printed = r.source == LogSource::kUnknown || r.source == LogSource::kProgramOutput;
      if (r.source == LogSource::kKineto || printed || r.level >= LogLevel::kWarning || !r.exception.empty()) continue;
      ++normal;
    }
    return normal;
  }

  /// A traceback is a cause when its process says so, when somebody complains at once, or when it was the last word.
  bool Confirmed(const Signal& s) const {
    if (s.fatal) return true;
    for (const Signal& later : signals_) {
      if (facts_.place[later.row] <= facts_.place[s.row]) continue;
      if (later.role != SignalRole::kSymptom && later.role != SignalRole::kDeath &&
          later.role != SignalRole::kPeerLost && later.role != SignalRole::kTimeout) {
        continue;
      }
      if (later.layer == "request" || Suppressed(later)) continue;
      if (At(s) != trace::kNoTime && At(later) != trace::kNoTime && At(later) - At(s) > kConsequence) break;
      return NormalAfter(s, facts_.place[later.row]) < kNormalAfter;
    }
    return Record(s).level >= LogLevel::kError && NormalAfter(s, facts_.order.size()) <= kLastWords;
  }

  /// Walks over what is left in time and cuts it into incidents.
  void Group(const std::vector<const Signal*>& active) {
    std::vector<const Signal*> group;
    Nanos last = trace::kNoTime;
    const auto close = [&] {
      Explain(group);
      group.clear();
    };
    for (const Signal* s : active) {
      if (s->role == SignalRole::kStart) {
        // A service that starts again ends the incident; the starts of the other processes of one service do not.
        if (!group.empty() && At(*s) != trace::kNoTime && last != trace::kNoTime && At(*s) - last > kSecond) close();
        continue;
      }
      const bool apart =
          s->role == SignalRole::kCause && last != trace::kNoTime && At(*s) != trace::kNoTime && At(*s) - last > kApart;
      if (apart && !group.empty()) close();
      group.push_back(s);
      if (At(*s) != trace::kNoTime) last = At(*s);
    }
    close();
  }

  /// The traceback is of the process whose death the messenger reports.
  bool SpeaksFor(const Signal& traceback, const Signal& death) const {
    const auto writer = CulpritOf(store_, facts_, traceback);
    const auto dead = CulpritOf(store_, facts_, death);
    if (writer.rank && dead.rank) return *writer.rank == *dead.rank;
    return !dead.process.empty() && writer.process == dead.process;
  }

  const Signal* FirstCause(const std::vector<const Signal*>& group) const {
    const Signal* first = nullptr;
    for (const Signal* s : group) {
      if (!Fatal(s->role)) continue;
      if (first == nullptr) {
        first = s;
        continue;
      }
      const bool timed = At(*s) != trace::kNoTime && At(*first) != trace::kNoTime;
      const Nanos later = timed ? At(*s) - At(*first) : 0;
      const bool kernel = Record(*s).source == LogSource::kKernel && Record(*first).source != LogSource::kKernel;
      const Nanos reach = kernel ? kKernelReach : kSpecific;
      const bool better =
          Vagueness(s->role) < Vagueness(first->role) || (kernel && s->role == SignalRole::kCause) ||
          (first->role == SignalRole::kDeath && s->role == SignalRole::kException && SpeaksFor(*s, *first));
      if (better && later <= reach && s->false_alarm < 0.01) first = s;
    }
    return first;
  }

  void Explain(const std::vector<const Signal*>& group) {
    const Signal* first = FirstCause(group);
    if (first == nullptr) return;
    Finding finding;
    finding.fault = first->fault;
    finding.alternatives = first->alternatives;
    finding.false_alarm_probability = first->false_alarm;
    finding.culprit = CulpritOf(store_, facts_, *first);
    finding.onset = At(*first);
    finding.end = finding.onset;
    finding.view = "vertical";
    const std::string mark = AddEvidence(finding, store_, first->row);
    std::string text;
    if (first->role == SignalRole::kTimeout) {
      std::vector<const Signal*> timeouts;
      for (const Signal* s : group) {
        if (s->role == SignalRole::kTimeout) timeouts.push_back(s);
      }
      ReadWatchdogs(store_, facts_, timeouts, finding);
    } else if (first->role == SignalRole::kPeerLost) {
      text = LostPeer(group, finding, mark);
    } else {
      const std::string who = Who(finding.culprit);
      text = "First in time, " + std::string(first->what) + (who.empty() ? "" : ": " + who) +
             (first->device.empty() ? "" : ", device " + first->device) + " " + mark + ".";
      if (finding.fault == FaultClass::kProcDeath && first->role != SignalRole::kCause) finding.view = "horizontal";
      if (finding.fault == FaultClass::kProcDeath && Record(*first).source == LogSource::kKernel)
        NameKilled(group, finding, text);
      if (first->fault == FaultClass::kGpuAppFault || first->fault == FaultClass::kGpuHwFault)
        finding.view = "horizontal";
    }
    if (first->fault == FaultClass::kCollDivergence && first->role == SignalRole::kCause) {
      // Whoever notices the mismatch aborts; that says nothing about who went another way.
      finding.culprit.rank.reset();
      finding.culprit.process.clear();
      finding.view = "horizontal";
      text = "Ranks met in a collective with different operations or sizes " + mark +
             "; the line is of the rank that noticed it, not of the one at fault.";
      BlameEarlyLeaver(RanksOf(group), finding, text);
    }
    if (Record(*first).source == LogSource::kKernel) JudgeKernel(*first, group, finding, text);
    AddEchoes(*first, group, finding, text);
    finding.explanation = finding.explanation.empty() ? text : finding.explanation + (text.empty() ? "" : " " + text);
    finding.score = ScoreOf(finding.false_alarm_probability);
    Merge(std::move(finding), first->device);
    OtherDevices(*first, group);
  }

  /// The kernel reports the same class of fault of further devices: each is a finding of its own, no echo.
  void OtherDevices(const Signal& first, const std::vector<const Signal*>& group) {
    if (first.device.empty()) return;
    for (const Signal* s : group) {
      const bool own = s->role == SignalRole::kCause && s->fault == first.fault && !s->device.empty();
      if (!own || s->device == first.device || devices_.size() >= kDevices) continue;
      Finding finding;
      finding.fault = s->fault;
      finding.alternatives = s->alternatives;
      finding.false_alarm_probability = s->false_alarm;
      finding.culprit = CulpritOf(store_, facts_, *s);
      finding.onset = At(*s);
      finding.end = finding.onset;
      finding.view = "horizontal";
      const std::string mark = AddEvidence(finding, store_, s->row);
      finding.explanation = "The kernel reports the same of a further device, " + s->device + ": " +
                            std::string(s->what) + " " + mark + ".";
      finding.score = ScoreOf(finding.false_alarm_probability);
      Merge(std::move(finding), s->device);
    }
  }

  /// One rank ended in order while others were still at work and complain: it left out a collective.
  bool BlameEarlyLeaver(const std::vector<int>& survivors, Finding& finding, std::string& text) const {
    if (facts_.shut_down.size() != 1 || survivors.empty() || facts_.ranks.size() < 2) return false;
    const int left = *facts_.shut_down.begin();
    if (std::find(survivors.begin(), survivors.end(), left) != survivors.end()) return false;
    finding.fault = FaultClass::kCollDivergence;
    finding.culprit.rank = left;
    finding.culprit.process = ProcessOfRank(facts_, left);
    finding.culprit.layer = "collective";
    finding.false_alarm_probability = 4e-3;
    text += " Rank " + std::to_string(left) +
            " ended in order while the others were still at work: it left out a collective.";
    return true;
  }

  std::vector<int> RanksOf(const std::vector<const Signal*>& group) const {
    std::vector<int> out;
    for (const Signal* s : group) {
      const auto rank = RankOf(store_, facts_, s->row);
      if (rank && std::find(out.begin(), out.end(), *rank) == out.end()) out.push_back(*rank);
    }
    return out;
  }

  /// Ranks that fell silent by `at` and do not complain of others. Who left a trace lived until it was written; who was
  /// killed left none.
  std::vector<int> SilentPeers(const std::vector<int>& survivors, Nanos at) const {
    std::vector<int> silent = SilentRanks(facts_, at);
    std::erase_if(silent, [&](int r) { return std::find(survivors.begin(), survivors.end(), r) != survivors.end(); });
    if (silent.size() < 2 || facts_.traced.empty()) return silent;
    std::vector<int> untraced;
    std::copy_if(silent.begin(), silent.end(), std::back_inserter(untraced),
                 [&](int r) { return facts_.traced.count(r) == 0; });
    return untraced.size() == 1 ? untraced : silent;
  }

  /// The kernel names a process, the ranks complain afterwards that a peer is gone: it is the one that says nothing.
  void NameKilled(const std::vector<const Signal*>& group, Finding& finding, std::string& text) const {
    if (finding.culprit.rank) return;
    std::set<int> quiet = facts_.ranks;
    for (int rank = 0; rank < facts_.world_size && facts_.world_size <= kMostRanks; ++rank) quiet.insert(rank);
    const size_t all = quiet.size();
    for (const int rank : RanksOf(group)) quiet.erase(rank);
    if (quiet.size() != 1 || all < 2) return;
    finding.culprit.rank = *quiet.begin();
    finding.culprit.process = ProcessOfRank(facts_, *quiet.begin());
    text += " Of " + std::to_string(all) + " ranks only " + std::to_string(*quiet.begin()) +
            " does not complain that a peer is gone.";
  }

  /// Which rank is gone? The one that fell silent; a survivor's line may name an innocent one.
  std::string LostPeer(const std::vector<const Signal*>& group, Finding& finding, const std::string& mark) {
    const std::vector<int> survivors = RanksOf(group);
    const std::vector<int> silent = SilentPeers(survivors, finding.onset);
    finding.view = "horizontal";
    const std::string who = Who(finding.culprit);
    finding.culprit.rank.reset();
    finding.culprit.process.clear();
    std::string text = (who.empty() ? "A rank" : who) + " lost its connection to a peer " + mark + ".";
    if (silent.empty() && BlameEarlyLeaver(survivors, finding, text)) return text;
    if (silent.size() != 1) {
      finding.false_alarm_probability = 8e-3;
      return text + " The logs do not tell which peer died: compare the last lines of all ranks.";
    }
    const int dead = silent.front();
    finding.culprit.rank = dead;
    finding.culprit.process = ProcessOfRank(facts_, dead);
    finding.false_alarm_probability = 1e-3;
    const auto last = facts_.last_word.find(dead);
    if (last == facts_.last_word.end())
      return text + " Rank " + std::to_string(dead) + " is the only one that left no line at all.";
    finding.onset = last->second;
    for (size_t i = facts_.order.size(); i-- > 0;) {
      if (RankOf(store_, facts_, facts_.order[i]) != dead) continue;
      return text + " Rank " + std::to_string(dead) + " fell silent before that, without an error or an orderly end " +
             AddEvidence(finding, store_, facts_.order[i]) + ".";
    }
    return text;
  }

  /// The kernel says which program; whether it is one of the service's own decides how much it matters.
  void JudgeKernel(const Signal& first, const std::vector<const Signal*>& group, Finding& finding,
                   std::string& text) const {
    if (first.fault == FaultClass::kProcDeath && !facts_.kernel_only) {
      const bool ours =
          first.pid && (facts_.name_of_pid.count(*first.pid) > 0 || facts_.rank_of_pid.count(*first.pid) > 0);
      const bool complained = std::any_of(group.begin(), group.end(),
                                          [&](const Signal* s) { return Record(*s).source != LogSource::kKernel; });
      if (!ours && !complained) finding.false_alarm_probability = 0.03;
      if (ours) finding.false_alarm_probability = 1e-4;
    }
    size_t same = 0;
    std::vector<int64_t> pids;
    for (const Signal* s : group) {
      if (Record(*s).source != LogSource::kKernel || s->fault != first.fault || s->device != first.device) continue;
      ++same;
      if (s->pid && std::find(pids.begin(), pids.end(), *s->pid) == pids.end()) pids.push_back(*s->pid);
    }
    if (same > 1) text += " The kernel reports it " + std::to_string(same) + " times.";
    // The same software fault under several programs on one device points to the device.
    if (first.fault == FaultClass::kGpuAppFault && pids.size() >= 3) {
      finding.alternatives = {{FaultClass::kGpuHwFault, 0.6}};
      text += " It hits several programs, so the device itself is suspect.";
    }
  }

  void AddEchoes(const Signal& first, const std::vector<const Signal*>& group, Finding& finding, std::string& text) {
    size_t echoes = 0;
    size_t complaints = 0;  // of others than the kernel, which may repeat itself
    std::string marks;
    std::set<std::string> seen;
    for (const Signal* s : group) {
      if (At(*s) != trace::kNoTime) finding.end = std::max(finding.end, At(*s));
      if (s == &first) continue;
      ++echoes;
      complaints += Record(*s).source == LogSource::kKernel ? 0 : 1;
      trace::Culprit writer;
      writer.process = Record(*s).process;
      writer.rank = RankOf(store_, facts_, s->row);
      const std::string who = Who(writer);
      if (Record(*s).source == LogSource::kKernel || who.empty() || finding.victims.size() >= kVictims ||
          who == Who(finding.culprit))
        continue;
      if (!seen.insert(who).second) continue;
      // What the culprit's own rank says of it proves it and makes it no victim.
      if (!writer.rank.has_value() || writer.rank != finding.culprit.rank)
        finding.victims.push_back(
            {writer.rank, (writer.process.empty() ? "" : writer.process + ": ") + Shorten(s->line, 160)});
      const std::string mark = AddEvidence(finding, store_, s->row);
      if (!mark.empty()) marks += (marks.empty() ? "" : " ") + mark;
    }
    if (echoes > 0) {
      text += (text.empty() ? "" : " ") + std::to_string(echoes) +
              (echoes == 1 ? " later line is its echo" : " later lines are its echoes") +
              (marks.empty() ? "." : ", among them " + marks + ".");
    }
    // A messenger or a survivor that complains makes a false alarm less likely.
    if (first.role == SignalRole::kCause && complaints > 0)
      finding.false_alarm_probability = std::min(finding.false_alarm_probability, 1e-3);
  }

  /// The same fault of the same device or process again is one finding.
  void Merge(Finding finding, const std::string& device) {
    for (size_t i = 0; i < devices_.size(); ++i) {
      Finding& known = out_.findings[first_finding_ + i];
      if (known.fault != finding.fault || known.culprit.process != finding.culprit.process ||
          known.culprit.rank != finding.culprit.rank || devices_[i] != device)
        continue;
      for (const auto& evidence : finding.evidence) {
        if (evidence.kind == trace::Evidence::Kind::kLog) AddEvidence(known, store_, evidence.log.value());
      }
      known.end = std::max(known.end, finding.end);
      known.false_alarm_probability = std::min(known.false_alarm_probability, finding.false_alarm_probability);
      known.score = ScoreOf(known.false_alarm_probability);
      return;
    }
    out_.findings.push_back(std::move(finding));
    devices_.push_back(device);
  }

  void WriteNotes() {
    if (!suppressed_.empty()) {
      const Signal& s = *suppressed_.front();
      out_.notes.push_back({"Orderly shutdown: " + std::to_string(suppressed_.size()) +
                                (suppressed_.size() == 1 ? " error line after it is its consequence"
                                                         : " error lines after it are its consequences") +
                                " and no crash, first \"" + Shorten(s.line, 120) + "\".",
                            At(s), At(*suppressed_.back())});
    }
    for (size_t i = 0; i < unconfirmed_.size() && i < kNotes; ++i) {
      const Signal& s = *unconfirmed_[i];
      out_.notes.push_back({"A traceback without consequences: \"" + Shorten(s.line, 120) + "\".", At(s), At(s)});
    }
  }

  struct End {
    size_t place = 0;
    bool shutdown = false;
    Nanos at = trace::kNoTime;
  };
  const trace::Store& store_;
  const LogFacts& facts_;
  const std::vector<Signal>& signals_;
  LogCauses& out_;
  const size_t first_finding_;        // findings of others stand before
  std::vector<std::string> devices_;  // of each finding made here: PCI address, or empty
  std::map<uint32_t, std::vector<End>> ends_;
  std::vector<const Signal*> suppressed_;
  std::vector<const Signal*> unconfirmed_;
};

}  // namespace

void FindIncidents(const trace::Store& store, const LogFacts& facts, const std::vector<Signal>& signals,
                   LogCauses& out) {
  Incidents(store, facts, signals, out).Run();
}

}  // namespace teller::locate
