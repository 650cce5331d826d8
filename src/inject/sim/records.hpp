#pragma once

#include <string>
#include <vector>

#include "base/rng.hpp"
#include "base/status.hpp"
#include "inject/sim/layout.hpp"
#include "inject/sim/scheduler.hpp"

namespace teller::inject::sim {

/// Lines of one log, kept until they can be put in order.
class LogFile {
 public:
  void Add(Nanos at, std::string text) { lines_.push_back({at, std::move(text)}); }
  /// Some lines reach the file late, behind others: a share of `late`.
  void Delay(double late, base::Rng& rng);
  /// Text in order of arrival.
  std::string Text() const;
  bool empty() const { return lines_.empty(); }

 private:
  struct Line {
    Nanos at;
    std::string text;
  };
  std::vector<Line> lines_;
};

/// Writes a whole file. Errors: kUnreadable.
base::Status WriteFile(const std::string& path, const std::string& text);

/// "11-29 19:49:57", "2026-11-29 20:27:58.092", "2026-11-29 20:24:53,452", "2025-01-21T02:21:33,498559+00:00".
std::string StampVllm(Nanos at);
std::string StampSglang(Nanos at, bool fraction);
std::string StampPython(Nanos at);
std::string StampKernel(Nanos at);
std::string StampTorch(Nanos at);  ///< "1129 20:24:51.588924093"

/// One request as vLLM's span, an export request a line.
std::string SpanLine(const Request& request, uint64_t seed, int pid);
/// SGLang's line when a request is done.
std::string FinishLine(const Request& request);
/// The client's own record.
std::string TruthLine(const Request& request);

/// Counters of an engine at one time.
struct Sample {
  Nanos at = 0;
  int replica = 0;
  size_t running = 0;
  size_t waiting = 0;
  double usage = 0;
  size_t loading = 0;  ///< requests that wait for their keys
  uint64_t retractions = 0;
  uint64_t asked = 0;
  uint64_t found = 0;
  uint64_t prompt_tokens = 0;
  uint64_t made_tokens = 0;
  uint64_t done = 0;
  uint64_t aborted = 0;
  bool speculates = false;
  bool transfers = false;  ///< keys come from another instance
  DraftCounts drafts;
};
/// Text of one scrape of /metrics.
std::string ScrapeText(Engine engine, const std::vector<Sample>& samples);

}  // namespace teller::inject::sim
