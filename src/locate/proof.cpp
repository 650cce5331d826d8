#include "locate/proof.hpp"

#include <utility>

namespace teller::locate {

std::string Cite(trace::Finding& finding, trace::Evidence evidence) {
  evidence.id = "E" + std::to_string(finding.evidence.size() + 1);
  finding.evidence.push_back(std::move(evidence));
  return "[" + finding.evidence.back().id + "]";
}

std::string CiteCounters(trace::Finding& finding, trace::FileRow file, trace::Nanos at, std::string text) {
  return Cite(finding, {.kind = trace::Evidence::Kind::kStatistic,
                        .file = file,
                        .ref = "counters",
                        .at = at,
                        .text = std::move(text)});
}

std::string CiteRequest(trace::Finding& finding, const trace::Store& store, const trace::Request& request,
                        trace::Nanos at, std::string text) {
  trace::Evidence evidence{.kind = trace::Evidence::Kind::kStatistic, .at = at, .text = std::move(text)};
  if (!request.records.empty()) {
    evidence.file = store.request_records[request.records.front()].file;
    evidence.ref = store.request_records[request.records.front()].ref;
  }
  return Cite(finding, std::move(evidence));
}

}  // namespace teller::locate
