// Lines that begin with a bracket: "[stamp ..] text" of SGLang, TensorRT-LLM, Fabric Manager, raylet and Python
// loggers.
#include <array>

#include "base/nanos.hpp"
#include "ingest/log/grammar.hpp"

namespace teller::ingest::log {

using trace::LogLevel;
using trace::LogSource;

namespace {

/// "TP0", "DP4 TP4": ranks inside SGLang's bracket. The TP index is the rank where PP and DP attention are off or at 0.
bool ReadSglangRanks(Cursor& c, ParsedLine& out) {
  Cursor walk = c;
  bool pipeline = false;
  bool any = false;
  while (walk.Eat(' ')) {
    const std::string_view word = walk.Word("");
    size_t letters = 0;
    while (letters < word.size() && IsUpper(word[letters])) ++letters;
    Cursor digits(word.substr(letters));
    int64_t index = 0;
    if (letters < 2 || !digits.Number(1, 5, index) || !digits.done()) return false;
    if (word.substr(0, letters) == "TP") out.rank = static_cast<int>(index);
    if (word.substr(0, letters) == "PP" && index > 0) pipeline = true;
    any = true;
  }
  if (pipeline) out.rank.reset();
  if (any) out.process = "scheduler";
  c = walk;
  return any;
}

/// SGLang does not name its processes; what they say does.
std::string_view SglangProcess(std::string_view message) {
  static constexpr std::array<std::string_view, 16> kScheduler = {
      "Prefill batch",         "Decode batch",    "KV cache pool is full",
      "Decode out of memory",  "Load weight",     "Memory pool",
      "Init torch distrib",    "Init parallel",   "KV Cache is alloc",
      "max_total_num_tokens",  "Scheduler hit",   "Capture ",
      "token_to_kv_pool",      "Memory baseline", "Retract",
      "Engine startup timings"};
  static constexpr std::array<std::string_view, 7> kTokenizer = {
      "Receive: obj=",     "Finish: obj=",     "SIGQUIT received",      "SIGTERM received",
      "kill_process_tree", "Received sigquit", "The server is fired up"};
  for (const auto head : kScheduler) {
    if (StartsWith(message, head)) return "scheduler";
  }
  if (StartsWith(message, "DetokenizerManager hit") || StartsWith(message, "Detokenizer")) return "detokenizer";
  for (const auto head : kTokenizer) {
    if (StartsWith(message, head)) return "tokenizer_manager";
  }
  return {};
}

/// The tail "(file.py:502:module)" of loggers that put it last.
std::string_view TakeTrailingFile(std::string_view& message) {
  const std::string_view text = TrimRight(message);
  if (!EndsWith(text, ")")) return {};
  const size_t open = text.rfind('(');
  if (open == std::string_view::npos || open == 0) return {};
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  const size_t colon = inside.find(".py:");
  if (colon == std::string_view::npos || inside.find(' ') != std::string_view::npos) return {};
  const size_t end = inside.find(':', colon + 4);
  message = TrimRight(text.substr(0, open));
  return inside.substr(0, end);
}

/// "INFO:     127.0.0.1:1 - ..." behind a stamp is uvicorn's line.
bool ContinueAsUvicorn(std::string_view message, ParsedLine& out) {
  ParsedLine inner;
  if (!ParseUvicorn(message, inner)) return false;
  out.source = LogSource::kUvicorn;
  out.level = inner.level;
  out.message = inner.message;
  return true;
}

/// One "[..]" behind the stamp and what it says. False when it belongs to the text.
bool ReadTag(std::string_view inside, ParsedLine& out, bool& numbered) {
  Cursor word(inside);
  int64_t value = 0;
  if (inside.size() == 1 && LevelFromLetter(inside[0]) != LogLevel::kUnknown) {
    out.level = LevelFromLetter(inside[0]);
  } else if (LevelFromWord(inside) != LogLevel::kUnknown) {
    out.level = LevelFromWord(inside);
  } else if ((word.Eat("RANK ") || word.Eat("MPI_Rank ") || word.Eat("rank") || word.Eat("Rank ")) &&
             word.Number(1, 6, value)) {
    out.rank = static_cast<int>(value);
  } else if (StartsWith(inside, "TRT-LLM")) {
    out.source = LogSource::kTensorRtLlm;
  } else if (StartsWith(inside, "tid ")) {
    out.source = LogSource::kFabricManager;
    out.process = "nv-fabricmanager";
  } else if (Cursor number(inside); !numbered && number.Number(1, 10, value) && number.done()) {
    out.pid = value;  // gunicorn: "[stamp] [pid] [LEVEL] text"
    numbered = true;
  } else {
    // TensorRT-LLM's "[_torch]" names its backend.
    return out.source == LogSource::kTensorRtLlm && StartsWith(inside, "_");
  }
  return true;
}

/// "[TRT-LLM] [RANK 0] [I] text", "[INFO] [tid 1] text", "[123] [INFO] text". False when no tag leads.
bool ReadTags(std::string_view rest, ParsedLine& out) {
  Cursor c(rest);
  bool numbered = false;
  while (c.peek() == '[') {
    Cursor tag = c;
    std::string_view inside;
    tag.Eat('[');
    if (!tag.Until("]", inside) || inside.size() > 40) break;
    tag.Eat(']');
    tag.SkipSpaces();
    if (!ReadTag(inside, out, numbered)) break;
    c = tag;
  }
  if (c.at() == 0) return false;
  if (numbered && out.level == LogLevel::kUnknown) {
    out.pid.reset();
    return false;
  }
  out.message = c.rest();
  if (out.source == LogSource::kTensorRtLlm && !out.rank) {
    const size_t at = out.message.substr(0, 80).find("global_rank = ");
    int64_t rank = 0;
    if (at != std::string_view::npos && Cursor(out.message.substr(at + 14)).Number(1, 6, rank))
      out.rank = static_cast<int>(rank);
  }
  return true;
}

/// "torch.distributed.elastic.multiprocessing.api: [ERROR] text": older releases of torchrun.
bool ReadNamedLevel(std::string_view rest, ParsedLine& out) {
  Cursor c(rest);
  const std::string_view name = c.Word("_.");
  std::string_view inside;
  if (name.empty() || !Contains(name, ".") || !c.Eat(": [") || !c.Until("]", inside)) return false;
  if (LevelFromWord(inside) == LogLevel::kUnknown) return false;
  c.Eat(']');
  c.SkipSpaces();
  out.level = LevelFromWord(inside);
  out.logger = name;
  out.message = c.rest();
  return true;
}

/// "LMCache INFO: text (file.py:1)", "INFO: text (file.py:1:module)". `uvicorn` when it is uvicorn's line.
bool ReadNameLevel(std::string_view rest, bool ranks, ParsedLine& out) {
  const size_t colon = rest.substr(0, 48).find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view head = rest.substr(0, colon);
  const bool spaced = colon + 1 >= rest.size() || rest[colon + 1] == ' ';
  if (!spaced && !StartsWith(head, "LMCache ")) return false;  // LMCache has lines without the blank
  const size_t space = head.rfind(' ');
  const LogLevel level = LevelFromWord(space == std::string_view::npos ? head : head.substr(space + 1));
  if (level == LogLevel::kUnknown) return false;
  if (ranks) return false;
  if (ContinueAsUvicorn(rest, out)) {
    out.process = "tokenizer_manager";
    return true;
  }
  out.level = level;
  out.message = TrimLeft(rest.substr(colon + 1));
  out.logger = TakeTrailingFile(out.message);
  return true;
}

/// What follows the bracket decides whose line it is.
void FinishBracketed(std::string_view rest, bool ranks, ParsedLine& out) {
  ParsedLine inner;
  out.message = rest;
  out.source = LogSource::kPythonLogging;
  if (ParseNccl(rest, inner)) {
    out.source = LogSource::kNccl;
    out.level = inner.level;
    out.message = inner.message;
    out.logger = inner.logger;
    out.pid = inner.pid;
    return;
  }
  if (ReadTags(rest, out) || ReadNamedLevel(rest, out) || ReadNameLevel(rest, ranks, out)) return;
  out.source = LogSource::kSglang;
  if (out.process.empty()) out.process = SglangProcess(rest);
  if (!ranks) ContinueAsUvicorn(rest, out);
}

/// raylet and other Ray C++: "2025-04-02 15:02:00,117 E 135782 135782" inside the bracket.
bool ReadRayTail(Cursor& c, ParsedLine& out) {
  Cursor walk = c;
  int64_t pid = 0;
  int64_t tid = 0;
  if (!walk.Eat(' ')) return false;
  const LogLevel level = LevelFromLetter(walk.peek());
  if (level == LogLevel::kUnknown) return false;
  walk.Eat(walk.peek());
  if (!walk.Eat(' ') || !walk.Number(1, 10, pid) || !walk.Eat(' ') || !walk.Number(1, 10, tid) || walk.peek() != ']') {
    return false;
  }
  out.level = level;
  out.pid = pid;
  c = walk;
  return true;
}

/// "(raylet) node_manager.cc:3069: text" behind Ray's bracket.
void FinishRay(std::string_view rest, ParsedLine& out) {
  out.source = LogSource::kRay;
  Cursor c(rest);
  std::string_view name;
  if (c.Eat('(') && c.Until(")", name) && name.size() < 40) {
    c.Eat(')');
    c.SkipSpaces();
    out.process = std::string(name);
  } else {
    c.Move(0);
  }
  Cursor file = c;
  const std::string_view path = file.Word("_./-");
  int64_t line = 0;
  if (Contains(path, ".") && file.Eat(':') && file.Number(1, 7, line) && file.Eat(": ")) {
    out.logger = rest.substr(c.at(), file.at() - c.at() - 2);
    c = file;
  }
  out.message = c.rest();
}

/// "[TensorRT-LLM][INFO] text", "[TensorRT-LLM][ERROR][3] text": no time.
bool ParseTensorRtLlmCpp(std::string_view line, ParsedLine& out) {
  Cursor c(line);
  std::string_view word;
  if (!c.Eat("[TensorRT-LLM]") || !c.Eat('[') || !c.Until("]", word)) return false;
  out.level = LevelFromWord(word);
  if (out.level == LogLevel::kUnknown) return false;
  c.Eat(']');
  c.Eat(' ');
  Cursor number = c;
  int64_t rank = 0;
  if (number.Eat('[') && number.Number(1, 6, rank) && number.Eat(']')) {
    out.rank = static_cast<int>(rank);
    c = number;
    c.Eat(' ');
  }
  out.header = true;
  out.source = LogSource::kTensorRtLlm;
  out.message = c.rest();
  return true;
}

/// "2025-11-05 16:38:04 +0000" (gunicorn): a zone set off by a blank.
void ReadSpacedZone(Cursor& c, Stamp& stamp) {
  Cursor walk = c;
  if (!walk.Eat(' ') || (walk.peek() != '+' && walk.peek() != '-')) return;
  const bool minus = walk.peek() == '-';
  int64_t zone = 0;
  walk.Eat(walk.peek());
  if (!walk.Number(4, 4, zone) || zone > 1400) return;
  const int64_t minutes = zone / 100 * 60 + zone % 100;
  stamp.at -= (minus ? -minutes : minutes) * 60 * base::kSecond;
  stamp.open &= static_cast<uint8_t>(~trace::kZoneOpen);
  c = walk;
}

}  // namespace

bool ParseBracketed(std::string_view line, ParsedLine& out) {
  if (ParseTensorRtLlmCpp(line, out)) return true;
  out = {};
  if (StartsWith(line, "[TRT-LLM] ") && ReadTags(line, out)) return out.header = true;
  out = {};
  Cursor c(line);
  if (!c.Eat('[')) return false;
  const bool stamped = ReadDateTime(c, out.stamp) || ReadUsDateTime(c, out.stamp) || ReadMonthNameTime(c, out.stamp);
  const bool time_only = !stamped && ReadTimeOfDay(c, out.stamp);
  if (stamped && (out.stamp.open & trace::kZoneOpen) != 0) ReadSpacedZone(c, out.stamp);
  const bool ray = stamped && ReadRayTail(c, out);
  const bool ranks = !ray && ReadSglangRanks(c, out);
  if (!stamped && !time_only && !ranks) return false;  // SGLang writes "[ TP0] text" where its time format is empty
  if (!c.Eat(']')) return false;
  if (time_only && !ranks && c.peek() != ' ') return false;
  c.Eat(' ');
  out.header = true;
  if (ray) {
    FinishRay(c.rest(), out);
  } else {
    FinishBracketed(c.rest(), ranks, out);
  }
  return true;
}

}  // namespace teller::ingest::log
