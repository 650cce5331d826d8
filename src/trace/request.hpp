#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/types.hpp"

namespace teller::trace {

struct RequestTag;
using RequestRow = base::Id<RequestTag>;  ///< index into Trees::requests

/// Where a statement about a request comes from.
enum class RequestSource : uint8_t {
  kSpan = 0,  ///< an OTLP span of the serving engine
  kLog = 1,   ///< a log record that states times or counts of one request
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
};

}  // namespace teller::trace
