#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/types.hpp"

namespace teller::trace {

struct RequestTag;
using RequestRow = base::Id<RequestTag>;  ///< index into Trees::requests

/// Where a statement about a request comes from.
enum class RequestSource : uint8_t {
  kSpan = 0,  ///< an OTLP span of the serving engine
  kLog = 1,   ///< a log record that states times or counts of one request
  kList = 2,  ///< a log record that names several requests: says that they were known then, and little more
};

/// What one source states about one request. Times are epoch ns of the writing host's clock; what is not stated is
/// kNoTime, or -1 for durations and counts. Nothing here is derived.
struct RequestRecord {
  FileRow file;
  RequestSource source = RequestSource::kSpan;
  std::string ref;       ///< place in the file: "span:12", "line:412"
  std::string id;        ///< as written ("cmpl-7f3a-0", "0025-006"); may be empty
  std::string trace_id;  ///< hex; empty when not stated
  std::string process;   ///< engine's own name of the process that wrote it; empty when not told
  std::string engine;    ///< "vllm", "sglang", "llama.cpp", ... ; empty when not told
  std::string finish_reason;
  std::string error;  ///< status text of a failed request; empty when it went well or is not told
  bool failed = false;

  Nanos arrival = kNoTime;      ///< the front end got it
  Nanos dispatched = kNoTime;   ///< the front end handed it on (after tokenization)
  Nanos admitted = kNoTime;     ///< the scheduler ran it for the first time
  Nanos prefilled = kNoTime;    ///< prefill was done
  Nanos first_token = kNoTime;  ///< first token left the engine's front end
  Nanos finished = kNoTime;     ///< last token left

  Nanos queue_time = -1;  ///< waiting in the scheduler
  Nanos prefill_time = -1;
  Nanos decode_time = -1;
  Nanos ttft = -1;  ///< time to first token, from arrival
  Nanos e2e = -1;   ///< from arrival to the last token

  int64_t prompt_tokens = -1;
  int64_t cached_tokens = -1;  ///< of the prompt, found in a cache
  int64_t output_tokens = -1;
  int64_t preemptions = -1;  ///< times it was thrown back (vLLM: preempted, SGLang: retracted)

  // Of records of source kList only.
  Nanos named = kNoTime;         ///< time of the log record
  bool in_flight = false;        ///< the record lists what the engine was serving then
  int64_t computed_tokens = -1;  ///< of prompt and output, computed before then
};

/// The points in time of a record.
inline constexpr std::array<Nanos RequestRecord::*, 6> kRequestTimes = {
    &RequestRecord::arrival,   &RequestRecord::dispatched,  &RequestRecord::admitted,
    &RequestRecord::prefilled, &RequestRecord::first_token, &RequestRecord::finished};

/// A stretch of a request's life, in the order of time.
enum class PhaseKind : uint8_t {
  kFrontEnd = 0,     ///< from arrival until the scheduler has it: HTTP, tokenizer, event loop, the way to the engine
  kQueue = 1,        ///< in the scheduler's queue
  kPrefill = 2,      ///< from its first scheduling until its first token exists
  kDecode = 3,       ///< until its last token exists
  kOutput = 4,       ///< detokenizer and the way out
  kUnexplained = 5,  ///< what no source speaks of
};
inline constexpr int kPhaseKinds = 6;
std::string_view Name(PhaseKind kind);

/// One phase of one request. The phases of a request add up to its end-to-end time exactly.
struct RequestPhase {
  PhaseKind kind = PhaseKind::kUnexplained;
  Nanos begin = kNoTime;  ///< known to within Request::at_error
  Nanos duration = 0;
};

/// How much is known about the steps that served a request.
enum class StepCover : uint8_t {
  kNone = 0,   ///< no steps were recorded while it was served: phases only
  kPart = 1,   ///< it lies partly outside the recorded steps, or which of them served it is not certain
  kExact = 2,  ///< every step that served it is known, and token counts agree
};
std::string_view Name(StepCover cover);

/// Why no steps are known of a request.
enum class NoSteps : uint8_t {
  kNoneRecorded = 0,  ///< no trace has steps
  kUnmarked = 1,      ///< no step's mark tells how many requests it serves
  kUntimed = 2,       ///< nothing tells when the request was computed
  kOutside = 3,       ///< none was recorded while it was served
  kUncertain = 4,     ///< some were, and which of them served it is not certain
};
/// As a clause: "no steps were recorded while it was served".
std::string_view Text(NoSteps why);

/// One step's part in one request.
struct RequestStep {
  StepRow step;
  bool prefill = false;
  int64_t tokens = 0;  ///< of this request, computed in this step
  Nanos inside = 0;    ///< how long the step kept the request: its duration, clipped to the model phases
  Nanos share = 0;     ///< `inside` times this request's part of the step's tokens
};

/// Time in which a request stood still, or was slowed, because another one's prompt was being computed.
struct RequestBlock {
  RequestRow by;  ///< none when it is not known which one
  Nanos duration = 0;
  int64_t prompt_tokens = -1;  ///< of the other one
};

/// One request: everything known about it, as a tree of phases and steps.
struct Request {
  std::string id;  ///< the shortest form in which a source writes it
  std::string trace_id;
  std::string engine;
  std::string process;            ///< the front-end process, as far as told
  std::vector<uint32_t> records;  ///< indices into Store::request_records
  std::vector<LogRow> logs;       ///< records of logs that are about it
  bool failed = false;
  std::string error;
  std::string finish_reason;

  Nanos arrival = kNoTime;
  Nanos finished = kNoTime;  ///< last token left the server
  Nanos at_error = 0;        ///< half width of what the place of its phases leaves open
  Nanos ttft = -1;           ///< time to first token, server side; -1 unknown
  Nanos e2e = -1;            ///< arrival to finished; -1 unknown
  Nanos handed_on = -1;      ///< the front end's own time before it handed the request on; -1 where not stated
  Nanos first_out = -1;      ///< from the first token's making to its leaving the server; -1 unknown
  int64_t prompt_tokens = -1;
  int64_t cached_tokens = -1;
  int64_t output_tokens = -1;
  int64_t preemptions = -1;
  uint32_t listed = kNotListed;  ///< the latest of `records` that is a list's; kNotListed: none is

  static constexpr uint32_t kNotListed = 0xFFFFFFFFu;

  /// Bit of each PhaseKind whose length some source states or proves; a phase without it may have been there all the
  /// same.
  uint8_t told = 0;
  std::vector<RequestPhase> phases;  ///< order: by time; sum of durations == e2e; empty when e2e is unknown

  ProcessRow served_by;  ///< the traced process whose steps served it
  StepCover cover = StepCover::kNone;
  NoSteps no_steps = NoSteps::kNoneRecorded;  ///< only where cover is kNone
  std::vector<RequestStep> steps;             ///< order: by time
  // The model phases (prefill and decode) in parts; all zero where no steps are known:
  // own + others + blocked + between + unrecorded == prefill + decode.
  Nanos own = 0;                         ///< its shares of the steps that served it
  Nanos others = 0;                      ///< what other requests took of these steps
  Nanos blocked = 0;                     ///< inside steps that did not serve it
  Nanos between = 0;                     ///< outside all recorded steps
  Nanos unrecorded = 0;                  ///< before the first or after the last recorded step
  std::vector<RequestBlock> blocked_by;  ///< order: longest first

  /// Length of one phase; 0 when it has none.
  Nanos phase(PhaseKind kind) const;
  /// True when the length of a phase is stated or proved, 0 too.
  bool tells(PhaseKind kind) const { return (told >> static_cast<unsigned>(kind) & 1) != 0; }
  void Tell(PhaseKind kind) { told = static_cast<uint8_t>(told | 1u << static_cast<unsigned>(kind)); }
  /// Time per output token after the first; -1 unknown.
  Nanos tpot() const;
};

}  // namespace teller::trace
