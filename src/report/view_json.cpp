#include "report/view_json.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "report/call_tree.hpp"
#include "report/diagnosis_json.hpp"
#include "report/printable.hpp"
#include "report/summary.hpp"
#include "report/timeline.hpp"

namespace teller::report {

using Json = nlohmann::ordered_json;
using base::kNoTime;
using base::Nanos;

namespace {

constexpr size_t kMaxTreeNodes = 1500;
constexpr size_t kMaxTreeDepth = 200;
/// Calls below this part of their lane are summed up.
constexpr double kHiddenPart = 0.001;
constexpr size_t kMaxLogs = 300;
constexpr Nanos kLogMargin = 2 * base::kSecond;
constexpr size_t kMaxPoints = 4000;
constexpr size_t kMaxNameBytes = 400;
constexpr size_t kMaxMessageBytes = 4000;

std::string ShortName(std::string_view name) {
  return Shortened(name, kMaxNameBytes);
}

class View {
 public:
  View(const engine::Run& run, const trace::Diagnosis& diagnosis)
      : run_(run), store_(run.store), diagnosis_(diagnosis), focus_(ChooseFocus(run, diagnosis)) {
    base_ = focus_.step != nullptr ? focus_.step->begin : focus_.begin;
    if (base_ == kNoTime) base_ = Summarize(run).begin;
    if (base_ == kNoTime) base_ = 0;
    for (const trace::Finding& finding : diagnosis.findings) {
      for (const trace::Evidence& evidence : finding.evidence) {
        if (evidence.span.valid()) span_evidence_[evidence.span.value()].push_back(evidence.id);
        if (evidence.log.valid()) log_evidence_[evidence.log.value()].push_back(evidence.id);
      }
    }
  }

  Json Build() {
    Json names = Json::array();
    Json timeline = TimelineToJson();
    Json tree = TreeToJson();
    for (const trace::StringId id : names_) names.push_back(ShortName(store_.text(id)));
    return {{"base_ns", base_}, {"names", names},       {"focus", FocusToJson()}, {"timeline", timeline},
            {"tree", tree},     {"logs", LogsToJson()}, {"steps", StepsToJson()}};
  }

 private:
  Nanos Rel(Nanos at) const { return at - base_; }

  size_t NameIndex(trace::StringId id) {
    const auto [it, fresh] = name_index_.try_emplace(id, names_.size());
    if (fresh) names_.push_back(id);
    return it->second;
  }

  Json FocusToJson() const {
    if (focus_.step == nullptr && !focus_.finding) return nullptr;
    Json step = nullptr;
    if (focus_.step != nullptr) {
      const trace::Step& s = *focus_.step;
      step = {{"process", ProcessLabel(store_, s.process)},
              {"rank", s.rank ? Json(*s.rank) : Json(nullptr)},
              {"index", s.index},
              {"name", ShortName(s.name)},
              {"kind", Name(s.kind)},
              {"begin", Rel(s.begin)},
              {"end", Rel(s.end)},
              {"gap", s.gap_before}};
    }
    return {{"finding", focus_.finding ? Json(diagnosis_.findings[*focus_.finding].id) : Json(nullptr)},
            {"step", step}};
  }

  /// Spans are [begin, duration, row, name, kind, evidence ids...].
  Json TimelineToJson() {
    const Timeline timeline = BuildTimeline(run_, diagnosis_, focus_);
    if (timeline.lanes.empty()) return nullptr;
    Json lanes = Json::array();
    for (const TimelineLane& lane : timeline.lanes) {
      const trace::Track& track = store_.tracks[lane.track.value()];
      Json spans = Json::array();
      for (const TimelineSpan& s : lane.spans) {
        const uint32_t row = s.span.value();
        Json span = {Rel(store_.spans.begin[row]), store_.spans.duration[row], s.row, NameIndex(store_.spans.name[row]),
                     Name(store_.kind(row))};
        AddEvidence(row, span);
        spans.push_back(std::move(span));
      }
      lanes.push_back({{"process", ShortName(ProcessLabel(store_, track.process))},
                       {"track", ShortName(TrackLabel(track))},
                       {"stream", track.is_stream},
                       {"rows", lane.rows},
                       {"spans", spans}});
    }
    return {{"begin", Rel(timeline.begin)},
            {"end", Rel(timeline.end)},
            {"lanes", lanes},
            {"hidden_spans", timeline.hidden_spans},
            {"hidden_lanes", timeline.hidden_lanes}};
  }

  void AddEvidence(uint32_t row, Json& span) const {
    const auto it = span_evidence_.find(row);
    if (it == span_evidence_.end()) return;
    for (const std::string& id : it->second) span.push_back(id);
  }

  /// Nodes are [parent or -1, label, kind, count, total, self, first, longest, evidence ids...] in pre-order.
  Json TreeToJson() {
    if (focus_.step == nullptr) return nullptr;
    const trace::Step& step = *focus_.step;
    const CallTree tree =
        BuildCallTree(run_, {.process = step.process, .begin = step.begin, .end = std::max(step.end, step.begin + 1)});
    std::map<const CallNode*, std::set<std::string>> proofs;
    for (const auto& [row, ids] : span_evidence_) {
      if (tree.node_of[row] == CallTree::kNoNode) continue;
      proofs[&tree.nodes[tree.node_of[row]]].insert(ids.begin(), ids.end());
    }
    Json nodes = Json::array();
    uint64_t hidden = 0;
    for (const uint32_t lane : tree.lanes) AddNodes(tree, lane, proofs, nodes, hidden);
    return {{"nodes", nodes}, {"hidden_calls", hidden}};
  }

  void AddNodes(const CallTree& tree, uint32_t lane, const std::map<const CallNode*, std::set<std::string>>& proofs,
                Json& nodes, uint64_t& hidden) const {
    struct Open {
      uint32_t node;
      int64_t parent;
      size_t depth;
    };
    const double smallest = static_cast<double>(tree.nodes[lane].weight) * kHiddenPart;
    std::vector<Open> stack{{lane, -1, 0}};
    while (!stack.empty()) {
      const Open open = stack.back();
      stack.pop_back();
      const CallNode* node = &tree.nodes[open.node];
      const bool small = static_cast<double>(node->weight) < smallest && !proofs.contains(node);
      if (small || nodes.size() >= kMaxTreeNodes || open.depth > kMaxTreeDepth) {
        hidden += node->count;
        continue;
      }
      std::string label;
      node = FollowFrames(store_, tree, node, label);
      Json out = {open.parent,
                  Shortened(label, 2 * kMaxNameBytes),
                  node->is_lane ? "lane" : std::string(Name(node->kind)),
                  node->count,
                  node->total,
                  node->self,
                  Rel(node->first),
                  node->longest};
      if (const auto it = proofs.find(node); it != proofs.end()) {
        for (const std::string& id : it->second) out.push_back(id);
      }
      const int64_t self = static_cast<int64_t>(nodes.size());
      nodes.push_back(std::move(out));
      for (auto child = node->children.rbegin(); child != node->children.rend(); ++child) {
        stack.push_back({*child, self, open.depth + 1});
      }
    }
  }

  /// Evidence first, then warnings and errors, then what is nearest in time; shown in order of time.
  Json LogsToJson() const {
    const bool has_time = focus_.begin != kNoTime;
    const Nanos end = focus_.end == kNoTime ? focus_.begin : focus_.end;
    std::vector<std::tuple<int, Nanos, uint32_t>> near;
    for (uint32_t i = 0; i < store_.logs.size(); ++i) {
      const trace::LogRecord& log = store_.logs[i];
      const bool proof = log_evidence_.contains(i);
      const bool timed = has_time && log.at != kNoTime;
      if (!proof && (!timed || log.at < focus_.begin - kLogMargin || log.at > end + kLogMargin)) continue;
      const Nanos away = !timed ? 0 : log.at < focus_.begin ? focus_.begin - log.at : std::max<Nanos>(log.at - end, 0);
      near.emplace_back(proof ? 0 : log.level >= trace::LogLevel::kWarning ? 1 : 2, away, i);
    }
    std::sort(near.begin(), near.end());
    const size_t found = near.size();
    if (near.size() > kMaxLogs) near.resize(kMaxLogs);
    std::sort(near.begin(), near.end(), [&](const auto& a, const auto& b) {
      const uint32_t i = std::get<2>(a);
      const uint32_t j = std::get<2>(b);
      return std::pair(store_.logs[i].at, i) < std::pair(store_.logs[j].at, j);
    });
    Json records = Json::array();
    for (const auto& [group, away, i] : near) records.push_back(LogToJson(i));
    return {{"records", records}, {"hidden", found - near.size()}};
  }

  Json LogToJson(uint32_t row) const {
    const trace::LogRecord& log = store_.logs[row];
    Json ids = Json::array();
    if (const auto it = log_evidence_.find(row); it != log_evidence_.end()) ids = it->second;
    return {{"at", log.at == kNoTime ? Json(nullptr) : Json(Rel(log.at))},
            {"inferred", log.basis == trace::TimeBasis::kNeighbour},
            {"level", Name(log.level)},
            {"process", log.process},
            {"rank", log.rank ? Json(*log.rank) : Json(nullptr)},
            {"message", Shortened(log.message, kMaxMessageBytes)},
            {"exception", Shortened(log.exception, kMaxNameBytes)},
            {"file", log.file.valid() ? Json(log.file.value()) : Json(nullptr)},
            {"line", log.line},
            {"evidence", ids}};
  }

  /// One series a process; points are [index, begin, duration, gap, kind, flags] with flags 1 abnormal, 2 observer.
  Json StepsToJson() const {
    std::set<std::pair<std::optional<int>, Nanos>> abnormal;
    for (const trace::Finding& finding : diagnosis_.findings) {
      for (const trace::AbnormalStep& step : finding.steps) abnormal.emplace(step.rank, step.begin);
    }
    const std::vector<trace::Step>& steps = run_.trees.steps;
    const size_t bucket = steps.size() / kMaxPoints + 1;
    std::map<trace::ProcessRow, Json> points;
    for (size_t i = 0; i < steps.size();) {
      // The longest step of a bucket and every abnormal one stay.
      size_t end = i;
      size_t longest = i;
      while (end < steps.size() && end - i < bucket && steps[end].process == steps[i].process) {
        if (steps[end].duration() > steps[longest].duration()) longest = end;
        ++end;
      }
      for (size_t k = i; k < end; ++k) {
        const trace::Step& s = steps[k];
        const bool marked = abnormal.contains({s.rank, s.begin});
        if (k != longest && !marked) continue;
        points[s.process].push_back(
            {s.index, Rel(s.begin), s.duration(), s.gap_before, Name(s.kind), (marked ? 1 : 0) + (s.observer ? 2 : 0)});
      }
      i = end;
    }
    Json series = Json::array();
    for (auto& [process, list] : points) {
      series.push_back({{"process", ShortName(ProcessLabel(store_, process))}, {"points", std::move(list)}});
    }
    return {{"series", series}, {"every", bucket}};
  }

  const engine::Run& run_;
  const trace::Store& store_;
  const trace::Diagnosis& diagnosis_;
  Focus focus_;
  Nanos base_ = 0;
  std::map<uint32_t, std::vector<std::string>> span_evidence_;
  std::map<uint32_t, std::vector<std::string>> log_evidence_;
  std::unordered_map<trace::StringId, size_t> name_index_;
  std::vector<trace::StringId> names_;
};

}  // namespace

Json ViewToJson(const engine::Run& run, const trace::Diagnosis& diagnosis) {
  return View(run, diagnosis).Build();
}

}  // namespace teller::report
