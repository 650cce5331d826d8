#include "ingest/kineto/top_level.hpp"

#include <cstddef>

namespace teller::ingest {

namespace {

constexpr size_t kMaxKey = 256;                // longer keys are none of ours
constexpr size_t kMaxScalar = 1024;            // host names and versions
constexpr size_t kMaxDistributed = 16u << 20;  // lists every process group with all its ranks
constexpr size_t kMaxValues = 256;             // hostile files have endless keys

bool IsSpace(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

}  // namespace

void TopLevelScanner::Keep(char c) {
  if (!keep_) return;
  const size_t limit = key_ == "distributedInfo" ? kMaxDistributed : kMaxScalar;
  if (value_.size() >= limit) {
    keep_ = false;
    value_.clear();
    return;
  }
  value_.push_back(c);
}

TopLevelScanner::Stop TopLevelScanner::BeginValue(char c) {
  if (key_ == "traceEvents" && c == '[') {
    saw_events_ = true;
    return Stop::kEvents;
  }
  state_ = State::kInValue;
  value_.clear();
  keep_ = values_.size() < kMaxValues && (key_ == "distributedInfo" || (c != '[' && c != '{'));
  depth_ = 0;
  in_string_ = false;
  escaped_ = false;
  ContinueValue(c);
  return Stop::kNeedMore;
}

void TopLevelScanner::ContinueValue(char c) {
  const auto finish = [this](State next) {
    if (keep_) values_[key_] = value_;
    state_ = next;
  };
  if (in_string_) {
    Keep(c);
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
      if (depth_ == 0) finish(State::kAfterValue);
    }
    return;
  }
  if (depth_ == 0 && (c == ',' || c == '}')) return finish(c == ',' ? State::kKey : State::kDone);
  if (depth_ == 0 && IsSpace(c)) return finish(State::kAfterValue);
  Keep(c);
  if (c == '"') in_string_ = true;
  if (c == '{' || c == '[') ++depth_;
  if ((c == '}' || c == ']') && --depth_ <= 0) finish(State::kAfterValue);
}

TopLevelScanner::Stop TopLevelScanner::FeedChar(char c) {
  switch (state_) {
    case State::kStart:
      if (IsSpace(c)) return Stop::kNeedMore;
      if (skip_bom_ < 3 && c == "\xEF\xBB\xBF"[skip_bom_]) {
        ++skip_bom_;
        return Stop::kNeedMore;
      }
      if (c == '[') {
        bare_array_ = true;
        saw_events_ = true;
        return Stop::kEvents;
      }
      state_ = c == '{' ? State::kKey : State::kBroken;
      break;
    case State::kKey:
      if (c == '"') {
        key_.clear();
        escaped_ = false;
        state_ = State::kInKey;
      } else if (c == '}') {
        state_ = State::kDone;
      } else if (!IsSpace(c) && c != ',') {
        state_ = State::kBroken;
      }
      break;
    case State::kInKey:
      if (c == '"' && !escaped_) {
        state_ = State::kColon;
      } else {
        escaped_ = !escaped_ && c == '\\';
        if (key_.size() < kMaxKey) key_.push_back(c);
      }
      break;
    case State::kColon:
      if (c == ':') {
        state_ = State::kValue;
      } else if (!IsSpace(c)) {
        state_ = State::kBroken;
      }
      break;
    case State::kValue:
      if (!IsSpace(c)) return BeginValue(c);
      break;
    case State::kInValue: ContinueValue(c); break;
    case State::kAfterValue:
      if (c == ',') {
        state_ = State::kKey;
      } else if (c == '}') {
        state_ = State::kDone;
      } else if (!IsSpace(c)) {
        state_ = State::kBroken;
      }
      break;
    case State::kDone:
    case State::kBroken: break;
  }
  return Stop::kNeedMore;
}

TopLevelScanner::Stop TopLevelScanner::Feed(std::string_view& text) {
  while (!text.empty()) {
    if (state_ == State::kDone) return Stop::kEnd;
    if (state_ == State::kBroken) return Stop::kBroken;
    const Stop stop = FeedChar(text.front());
    if (state_ != State::kBroken) text.remove_prefix(1);
    if (stop != Stop::kNeedMore) return stop;
  }
  if (state_ == State::kDone) return Stop::kEnd;
  return state_ == State::kBroken ? Stop::kBroken : Stop::kNeedMore;
}

}  // namespace teller::ingest
