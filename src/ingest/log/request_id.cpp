#include "ingest/log/request_id.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "ingest/log/cursor.hpp"

namespace teller::ingest::log {

namespace {

constexpr size_t kMaxId = 256;       // an id of a client may be long; a longer word is text
constexpr size_t kSameId = 8;        // from this length on, an id inside a longer one is the same request
constexpr size_t kMaxQuoted = 1024;  // a quoted key or id; longer quotes are only skipped

constexpr int kRequestId = 1;
constexpr int kSentence = -1;  // ids of a sentence's list are of one family

/// Ids found in one message. Equal ones count once.
class Found {
 public:
  /// `all`, when given, gets every id in its place, equal ones too.
  explicit Found(std::vector<NamedId>* all = nullptr) : all_(all) {}

  void Add(std::string_view id, int family = kSentence) {
    if (all_ != nullptr && all_->size() < kMaxNamedIds) all_->push_back({id, family});
    if (several_) return;
    if (id_.empty() || (id_.size() >= kSameId && Contains(id, id_))) {
      id_ = id;  // "abc" as the client sent it and "cmpl-abc-0" as the engine made it are one request: the longer stays
    } else if (!(id == id_ || (id.size() >= kSameId && Contains(id_, id)))) {
      several_ = true;
    }
  }
  bool several() const { return several_; }
  /// Nothing more of the message is of use.
  bool enough() const { return several_ && (all_ == nullptr || all_->size() >= kMaxNamedIds); }
  std::string_view one() const { return several_ ? std::string_view() : id_; }

 private:
  std::vector<NamedId>* all_;
  std::string_view id_;
  bool several_ = false;
};

bool IsIdChar(char c) {
  return IsAlnum(c) || c == '-' || c == '_' || c == '.' || c == ':' || c == '/' || c == '+' || c == '@' || c == '#';
}

std::string_view IdWord(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && IsIdChar(text[n])) ++n;
  while (n > 0 && (text[n - 1] == '.' || text[n - 1] == ':')) --n;  // the end of a sentence or of a clause
  return text.substr(0, n);
}

bool HasDigit(std::string_view text) {
  return std::any_of(text.begin(), text.end(), IsDigit);
}

bool IsNoId(std::string_view id) {
  return id.empty() || id.size() > kMaxId || id == "None" || id == "null" || id == "nil" || id == "unknown" ||
         id == "N/A" || id == "n/a" || id.find_first_not_of("-") == std::string_view::npos;
}

bool AllZero(std::string_view id) {
  return id.find_first_not_of("0-") == std::string_view::npos;
}

/// End of the quoted text that begins at `open`, past its quote; npos when it is never closed.
size_t EndOfQuote(std::string_view text, size_t open) {
  const char quote = text[open];
  for (size_t i = open + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

enum class KeyKind { kNone, kRequest, kTrace };

struct Key {
  KeyKind kind = KeyKind::kNone;
  int family = 0;  ///< of keys that name a request: "req_id" and its list "req_ids" are of one
};

/// Last part of "decode_req.req.rid", in lower case, without _ and -.
Key KindOfKey(std::string_view key) {
  const size_t dot = key.rfind('.');
  if (dot != std::string_view::npos) key.remove_prefix(dot + 1);
  std::array<char, 24> plain = {};
  size_t n = 0;
  for (const char c : key) {
    if (c == '_' || c == '-' || c == ' ') continue;
    if (n >= plain.size()) return {};
    plain[n++] = IsUpper(c) ? static_cast<char>(c + 32) : c;
  }
  const std::string_view name(plain.data(), n);
  static constexpr std::array<std::pair<std::string_view, int>, 9> kRequest = {{{"requestid", kRequestId},
                                                                                {"requestids", kRequestId},
                                                                                {"reqid", 2},
                                                                                {"reqids", 2},
                                                                                {"rid", 3},
                                                                                {"rids", 3},
                                                                                {"xrequestid", 4},
                                                                                {"reqrid", 5},
                                                                                {"clientrequestid", 6}}};
  for (const auto& [key_name, family] : kRequest) {
    if (name == key_name) return {KeyKind::kRequest, family};
  }
  if (name == "traceid" || name == "traceparent") return {KeyKind::kTrace, 0};
  return {};
}

/// The value behind a key: "='x'", ": x", "=[ 'x' ]". `c` stands behind the key.
void ReadValue(Cursor& c, Key key, Found& found) {
  const KeyKind kind = key.kind;
  Cursor walk = c;
  walk.SkipSpaces();
  if (!walk.Eat('=') && !walk.Eat(':')) return;
  walk.SkipSpaces();
  const bool list = walk.Eat('[') || walk.Eat('{');
  while (true) {
    walk.SkipSpaces();
    std::string_view id;
    if (walk.peek() == '\'' || walk.peek() == '"') {
      const std::string_view rest = walk.rest();
      const size_t end = EndOfQuote(rest, 0);
      if (end == std::string_view::npos || end > kMaxQuoted) return;
      id = rest.substr(1, end - 2);
      walk.Move(walk.at() + end);
    } else {
      id = IdWord(walk.rest());
      walk.Move(walk.at() + id.size());
    }
    if (kind == KeyKind::kTrace && StartsWith(id, "00-") && id.size() == 55) id = id.substr(3, 32);  // W3C traceparent
    if (!IsNoId(id) && !(kind == KeyKind::kTrace && AllZero(id))) found.Add(id, key.family);
    c = walk;
    if (!list || id.empty() || found.enough()) return;
    walk.SkipSpaces();
    if (!walk.Eat(',')) return;
  }
}

/// "cmpl-", "chatcmpl-" and other heads that engines give their ids; or a UUID, or 16 and more hex digits.
bool LooksLikeId(std::string_view word) {
  static constexpr std::array<std::string_view, 10> kHeads = {"cmpl-",  "chatcmpl-", "resp_",     "embd-", "pool-",
                                                              "score-", "rerank-",   "classify-", "tokn-", "generate-"};
  for (const auto head : kHeads) {
    if (StartsWith(word, head) && word.size() > head.size()) return true;
  }
  size_t hex = 0;
  while (hex < word.size() && (IsDigit(word[hex]) || (word[hex] >= 'a' && word[hex] <= 'f') || word[hex] == '-')) ++hex;
  return hex >= 16 && HasDigit(word) && (hex == word.size() || word[hex] == '_');
}

/// vLLM's own sentences: the id stands at a known place, and a prompt may follow. Also its lists "request(s) a,b".
bool ReadSentence(std::string_view m, Found& found) {
  static constexpr std::array<std::string_view, 10> kVerbs = {
      "Received request ", "Added request ",      "Aborted request ",  "Finished request ",   "Aborting request ",
      "Abort request ",    "Generated response ", "Dropping request ", "Preempting request ", "Resuming request "};
  Cursor c(m);
  const auto list = [&] {
    while (true) {
      c.SkipSpaces();
      const std::string_view id = IdWord(c.rest());
      if (IsNoId(id)) return;
      found.Add(id);
      c.Move(c.at() + id.size());
      if (!c.Eat(',')) return;
    }
  };
  if (c.Eat("Aborted request(s) ") || c.Eat("Aborting request(s) ") || c.Eat("Abort request(s) ")) {
    list();
    return true;
  }
  for (const auto verb : kVerbs) {
    if (!c.Eat(verb)) continue;
    const std::string_view id = IdWord(c.rest());
    c.Move(c.at() + id.size());
    // "Received request to stop" names none: an id has a digit, or nothing but the sentence's end or a colon behind it.
    if (IsNoId(id) || !(HasDigit(id) || c.done() || c.rest() == "." || StartsWith(c.rest(), ": "))) return false;
    if (c.peek() == ',') {
      c.Move(verb.size());
      list();
    } else {
      found.Add(id);
    }
    return true;
  }
  if (c.Eat("Request ") || c.Eat("Sequence group ")) {
    const std::string_view id = IdWord(c.rest());
    c.Move(c.at() + id.size());
    static constexpr std::array<std::string_view, 7> kFates = {" aborted", " failed",    " is preempted", " finished",
                                                               " details", " timed out", " was cancelled"};
    for (const auto fate : kFates) {
      if (IsNoId(id) || !c.Eat(fate)) continue;
      found.Add(id);
      return true;
    }
  }
  return false;
}

/// "slot release: id 3 | task 12 | ...", "task id = 12", "id_task = 12"; -1 is no task.
void ReadTask(std::string_view m, Found& found) {
  static constexpr std::array<std::string_view, 6> kMarks = {
      "| task ", "task id = ", "id_task = ", "id_task\":", "task_id\":", "task_id = "};
  for (const auto mark : kMarks) {
    for (size_t at = m.find(mark); at != std::string_view::npos; at = m.find(mark, at + 1)) {
      Cursor c(m.substr(at + mark.size()));
      c.SkipSpaces();
      const size_t begin = c.at();
      int64_t number = 0;
      if (c.Number(1, 12, number)) found.Add(m.substr(at + mark.size() + begin, c.at() - begin));
    }
  }
}

/// Keys with values, and words that are ids behind the word "request". Quoted text is skipped unless it is a key.
void ReadKeys(std::string_view m, Found& requests, Found& traces) {
  bool after_request = false;
  bool unclosed[2] = {false, false};  // a quote without an end was seen: looking again would cost a pass each
  size_t i = 0;
  while (i < m.size()) {
    const char ch = m[i];
    const size_t which = ch == '"' ? 1 : 0;
    if ((ch == '\'' || ch == '"') && !unclosed[which] && (i == 0 || !IsAlnum(m[i - 1]))) {
      const size_t end = EndOfQuote(m, i);
      if (end == std::string_view::npos) {
        unclosed[which] = true;
        ++i;
        continue;
      }
      const std::string_view inside = m.substr(i + 1, end - i - 2);
      const Key key = inside.size() <= 40 ? KindOfKey(inside) : Key{};
      Cursor c(m);
      c.Move(end);
      if (key.kind != KeyKind::kNone) ReadValue(c, key, key.kind == KeyKind::kTrace ? traces : requests);
      i = c.at();
      after_request = false;
      continue;
    }
    if (!IsAlnum(ch)) {
      if (ch != ' ' && ch != '(' && ch != '[' && ch != '#') after_request = false;
      ++i;
      continue;
    }
    size_t end = i;
    while (end < m.size() && (IsAlnum(m[end]) || m[end] == '_' || m[end] == '-' || m[end] == '.')) ++end;
    const std::string_view word = m.substr(i, end - i);
    Cursor c(m);
    c.Move(end);
    Key key = KindOfKey(word);
    if (after_request && (word == "id" || word == "ID" || word == "Id")) key = {KeyKind::kRequest, kRequestId};
    if (key.kind != KeyKind::kNone) {
      ReadValue(c, key, key.kind == KeyKind::kTrace ? traces : requests);
    } else if (after_request && LooksLikeId(IdWord(word))) {
      requests.Add(IdWord(word));
    }
    after_request = word == "request" || word == "Request" || word == "req" || word == "requests" || word == "Req" ||
                    (after_request && key.kind == KeyKind::kRequest);
    i = std::max(end, c.at());
  }
}

bool MayName(std::string_view m) {
  static constexpr std::array<std::string_view, 6> kMarks = {"eq", "rid", "Rid", "trace", "Sequence group", "RID"};
  return std::any_of(kMarks.begin(), kMarks.end(), [&](std::string_view mark) { return Contains(m, mark); });
}

/// "request" is another thing to drivers, fabrics and communication libraries.
bool SpeaksOfOther(trace::LogSource source) {
  return source == trace::LogSource::kKernel || source == trace::LogSource::kFabricManager ||
         source == trace::LogSource::kNccl || source == trace::LogSource::kTorchC10 ||
         source == trace::LogSource::kKineto;
}

}  // namespace

std::string RequestId(trace::LogSource source, std::string_view message) {
  Found requests;
  if (source == trace::LogSource::kLlamaCpp) {
    if (Contains(message, "task")) ReadTask(message, requests);
    if (requests.several()) return {};
    if (!requests.one().empty()) return "task " + std::string(requests.one());
  }
  if (SpeaksOfOther(source)) return {};
  if (!MayName(message)) return {};
  if (ReadSentence(message, requests)) return std::string(requests.one());
  Found traces;
  ReadKeys(message, requests, traces);
  if (requests.several()) return {};
  return std::string(requests.one().empty() ? traces.one() : requests.one());
}

std::vector<NamedId> NamedIds(trace::LogSource source, std::string_view message) {
  std::vector<NamedId> all;
  if (SpeaksOfOther(source) || !MayName(message)) return all;
  Found requests(&all);
  Found traces;
  if (!ReadSentence(message, requests)) ReadKeys(message, requests, traces);
  if (!requests.several()) return {};
  // What a client and what an engine call one request stands once each, under keys of different families.
  std::map<int, std::set<std::string_view>> families;
  std::vector<NamedId> once;
  for (const NamedId& named : all) {
    if (families[named.family].insert(named.id).second) once.push_back(named);
  }
  std::erase_if(once, [&](const NamedId& named) { return families[named.family].size() < 2; });
  return once;
}

}  // namespace teller::ingest::log
