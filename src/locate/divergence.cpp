#include "locate/divergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "locate/naming.hpp"
#include "locate/proof.hpp"
#include "tree/collectives.hpp"

namespace teller::locate {

namespace {

using trace::FaultClass;
using trace::Finding;
using trace::Nanos;

constexpr size_t kFewestCalls = 24;  // of a rank, to know its habit
constexpr size_t kTail = 64;         // last calls that may differ from it
constexpr size_t kMostCalls = 100'000;
constexpr size_t kFewestSeen = 3;  // times that the same calls came before
constexpr std::array<size_t, 5> kContexts = {4, 8, 16, 32, 64};
constexpr Nanos kLeastWait = 1000 * base::kMilli;
constexpr Nanos kStampError = 2000 * base::kMilli;  // many logs know whole seconds only
constexpr double kBehind = 0.05;                    // of score

/// One call that starts a collective.
struct Call {
  Nanos begin = 0;
  uint32_t span = 0;
  bool opens = false;  ///< a step began since the call before
};

/// The calls of a process in order: those of the framework where there are any, else what carries them out.
std::vector<Call> Calls(const trace::Store& store, const trace::Trees& trees, trace::ProcessRow process,
                        const std::vector<const trace::Track*>& tracks) {
  std::vector<Call> started;
  std::vector<Call> carried;
  for (const trace::Track* track : tracks) {
    for (uint32_t span = track->first_span; span < track->first_span + track->span_count; ++span) {
      if (store.name(span).starts_with("c10d::")) {
        started.push_back({store.spans.begin[span], span});
      } else if (tree::IsCollectiveSpan(store, span)) {
        carried.push_back({store.spans.begin[span], span});
      }
    }
  }
  std::vector<Call>& calls = started.empty() ? carried : started;
  std::stable_sort(calls.begin(), calls.end(), [](const Call& a, const Call& b) { return a.begin < b.begin; });
  if (calls.size() > kMostCalls) calls.erase(calls.begin(), calls.end() - kMostCalls);
  std::vector<Nanos> begins;
  for (const trace::Step& step : trees.steps) {
    if (step.process == process) begins.push_back(step.begin);
  }
  std::sort(begins.begin(), begins.end());
  for (size_t i = 1; i < calls.size(); ++i) {
    const auto next = std::upper_bound(begins.begin(), begins.end(), calls[i - 1].begin);
    calls[i].opens = next != begins.end() && *next <= calls[i].begin;
  }
  return calls;
}

/// A call that came where another one always came before.
struct Break {
  Call call;
  uint32_t usual = 0;     ///< name, as StringId
  bool left_out = false;  ///< a step began before the call, and never before the usual one
};

/// What followed the same calls.
struct Followed {
  size_t times = 0;
  bool opens = false;  ///< a step began before it, at least once
};

/// The first call of the tail that differs from what always followed the same calls before it.
std::optional<Break> FirstBreak(const trace::Store& store, const std::vector<Call>& calls) {
  const auto name = [&](size_t i) { return store.spans.name[calls[i].span].value(); };
  const size_t tail = calls.size() - std::min(kTail, calls.size() / 4);
  for (const size_t length : kContexts) {
    if (2 * length > tail) return std::nullopt;
    std::map<std::vector<uint32_t>, std::map<uint32_t, Followed>> seen;  // calls -> names
    size_t unsure = 0;
    std::vector<uint32_t> context;
    const auto before = [&](size_t i) {
      context.clear();
      for (size_t k = i - length; k < i; ++k) context.push_back(name(k));
    };
    for (size_t i = length; i < tail; ++i) {
      before(i);
      auto& next = seen[context];
      Followed& followed = next[name(i)];
      ++followed.times;
      followed.opens |= calls[i].opens;
      unsure += next.size() > 1 ? 1 : 0;
    }
    if (unsure > 0) continue;  // too short to tell what comes
    for (size_t i = tail; i < calls.size(); ++i) {
      before(i);
      const auto known = seen.find(context);
      if (known == seen.end()) continue;
      const auto& [usual, followed] = *known->second.begin();
      if (followed.times >= kFewestSeen && usual != name(i))
        return Break{calls[i], usual, calls[i].opens && !followed.opens};
    }
    return std::nullopt;
  }
  return std::nullopt;
}

std::string Letters(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c >= 'a' && c <= 'z') letters += c;
  }
  return letters;
}

/// What carries out the collectives that this call starts; the call itself where none of its name is recorded.
std::string CarriedOutBy(const trace::Store& store, const trace::Trees& trees, std::string_view call) {
  constexpr std::string_view kLibrary = "c10d::";
  if (!call.starts_with(kLibrary)) return std::string(call);
  const std::string kind = Letters(call.substr(kLibrary.size()));
  for (const trace::Collective& collective : trees.collectives) {
    const std::string_view name = store.name(collective.members.front().span.value());
    if (Letters(name).ends_with(kind)) return std::string(name);
  }
  return std::string(call);
}

}  // namespace

void CompleteDivergence(const trace::Store& store, const trace::Trees& trees, Finding& finding) {
  if (finding.fault != FaultClass::kCollDivergence || finding.culprit.rank.has_value()) return;
  std::optional<Break> broken;
  trace::ProcessRow who;
  std::map<uint32_t, std::vector<const trace::Track*>> tracks;  // by process
  for (const trace::Track& track : store.tracks) tracks[track.process.value()].push_back(&track);
  for (const auto& [p, list] : tracks) {
    if (!store.processes[p].rank.has_value()) continue;
    const std::vector<Call> calls = Calls(store, trees, trace::ProcessRow(p), list);
    if (calls.size() < kFewestCalls) continue;
    const auto one = FirstBreak(store, calls);
    if (!one.has_value()) continue;
    if (broken.has_value()) return;  // two ranks do what they never did: this tells nothing
    broken = one;
    who = trace::ProcessRow(p);
  }
  if (!broken.has_value()) return;
  finding.culprit.rank = store.processes[who.value()].rank;
  finding.culprit.process = ProcessName(store, who);
  const std::string_view called = store.name(broken->call.span);
  const std::string_view usual = store.text(trace::StringId(broken->usual));
  const bool left_out = broken->left_out;
  finding.culprit.op = CarriedOutBy(store, trees, left_out ? usual : called);
  trace::Evidence evidence;
  evidence.kind = trace::Evidence::Kind::kSpan;
  evidence.file = store.processes[who.value()].file;
  evidence.ref = "span:" + std::to_string(broken->call.span);
  evidence.span = trace::SpanRow(broken->call.span);
  evidence.at = broken->call.begin;
  evidence.text = fmt::format("rank {} calls {} where it always called {} after the same calls before",
                              *finding.culprit.rank, called, usual);
  const std::string text = evidence.text;
  finding.explanation += fmt::format(
      " The traces tell: {} {}; no other rank broke with its habit.{}", text, Cite(finding, std::move(evidence)),
      left_out ? " It had gone on to its next step by then, so that one was left out." : "");
  finding.score = std::max(finding.score, 0.9);
}

void PutEchoesBehind(const trace::Store& store, std::vector<Finding>& findings) {
  for (const Finding& source : findings) {
    if (source.fault != FaultClass::kCollDivergence || source.onset == trace::kNoTime) continue;
    for (Finding& echo : findings) {
      const bool inside = !echo.evidence.empty() && echo.evidence.front().span.valid() &&
                          tree::IsCollectiveSpan(store, echo.evidence.front().span.value());
      if (echo.fault != FaultClass::kRuntimePause || !inside || echo.end - echo.onset < kLeastWait ||
          std::abs(echo.end - source.onset) > kStampError || echo.score <= source.score - kBehind)
        continue;
      echo.score = source.score - kBehind;
      echo.explanation += " It ended when the ranks gave up on a collective, and is how long they waited for it.";
    }
  }
}

}  // namespace teller::locate
