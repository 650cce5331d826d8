#include "retime/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

namespace teller::retime {

using trace::SpanRow;

CallFinder::CallFinder(const trace::Store& store, const trace::Trees& trees)
    : store_(store), trees_(trees), spans_(store.spans) {
  for (const auto& link : trees.launches) launched_.push_back({link.launch, link.work});
  std::sort(launched_.begin(), launched_.end(), [](const Launched& a, const Launched& b) {
    return std::pair(a.launch, a.work) < std::pair(b.launch, b.work);
  });
}

std::vector<CallFinder::Launched>::const_iterator CallFinder::FirstLaunch(SpanRow from) const {
  return std::lower_bound(launched_.begin(), launched_.end(), from,
                          [](const Launched& launched, SpanRow row) { return launched.launch < row; });
}

bool CallFinder::Counts(uint32_t row) const {
  switch (store_.kind(row)) {
    case trace::SpanKind::kService:
    case trace::SpanKind::kProfiler:
    case trace::SpanKind::kOverhead:
    case trace::SpanKind::kSync:
    case trace::SpanKind::kGpuAnnotation: return false;
    default: return true;
  }
}

template <class Visit>
void CallFinder::ForEachIn(uint32_t step_index, Visit visit) const {
  const trace::Step& step = trees_.steps[step_index];
  for (const trace::Track& track : store_.tracks) {
    if (track.process != step.process || track.is_stream) continue;
    const auto first = spans_.begin.begin() + track.first_span;
    const auto end = first + track.span_count;
    for (auto it = std::lower_bound(first, end, step.begin); it != end && *it < step.end; ++it) {
      const auto row = static_cast<uint32_t>(it - spans_.begin.begin());
      visit(row);
      for (auto launch = FirstLaunch(SpanRow(row)); launch != launched_.end() && launch->launch == SpanRow(row);
           ++launch) {
        visit(launch->work.value());
      }
    }
  }
}

base::Result<base::StringId> CallFinder::FindName(const std::vector<uint32_t>& steps, const std::string& text) const {
  std::set<base::StringId> fitting;
  std::optional<base::StringId> exact;
  for (const uint32_t step : steps) {
    ForEachIn(step, [&](uint32_t row) {
      if (!Counts(row)) return;
      const std::string_view name = store_.name(row);
      if (name == text) exact = spans_.name[row];
      if (name.find(text) != std::string_view::npos) fitting.insert(spans_.name[row]);
    });
  }
  if (exact) return *exact;
  if (fitting.size() == 1) return *fitting.begin();
  if (fitting.empty()) {
    return base::Error{base::Code::kNotFound,
                       fmt::format("nothing is named \"{}\" there; \"teller tree --step N\" lists what is", text)};
  }
  constexpr size_t kListed = 4;
  std::string names;
  size_t listed = 0;
  for (const base::StringId id : fitting) {
    if (listed++ == kListed) break;
    names += (names.empty() ? "" : ", ") + std::string(store_.text(id).substr(0, 60));
  }
  return base::Error{base::Code::kNotFound, fmt::format("\"{}\" fits {} names there: {}{}", text, fitting.size(), names,
                                                        fitting.size() > kListed ? ", ..." : "")};
}

StepCalls CallFinder::CallsIn(uint32_t step, base::StringId name) const {
  StepCalls found;
  found.step = step;
  ForEachIn(step, [&](uint32_t row) {
    if (spans_.name[row] != name || !Counts(row)) return;
    for (SpanRow up = spans_.parent[row]; up.valid(); up = spans_.parent[up.value()]) {
      if (spans_.name[up.value()] == name) return;
    }
    found.calls.push_back(SpanRow(row));
    found.total += spans_.duration[row];
  });
  std::sort(found.calls.begin(), found.calls.end(), [&](SpanRow a, SpanRow b) {
    return std::pair(spans_.begin[a.value()], a) < std::pair(spans_.begin[b.value()], b);
  });
  return found;
}

void CallFinder::Scale(SpanRow call, double factor, Changes& changes) const {
  changes.spans.push_back({call, factor});
  const trace::Track& track = store_.track_of(call.value());
  if (track.is_stream) return;
  // Spans below a call follow it in its track's rows.
  const trace::Nanos end = spans_.end(call.value());
  for (auto launch = FirstLaunch(call); launch != launched_.end(); ++launch) {
    const uint32_t row = launch->launch.value();
    if (row >= track.first_span + track.span_count || spans_.begin[row] >= end) break;
    changes.spans.push_back({launch->work, factor});
  }
}

}  // namespace teller::retime
