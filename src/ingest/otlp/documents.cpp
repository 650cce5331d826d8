#include "ingest/otlp/documents.hpp"

#include <algorithm>

namespace teller::ingest::otlp {

namespace {

constexpr size_t kMaxStray = 256;                // of a stray line, for the message
constexpr std::string_view kInSpans = "{[{[{[";  // resourceSpans, scopeSpans, spans
constexpr std::string_view kInList = "{[";       // a bare list of spans, or whole resources
constexpr std::string_view kHead = "{\"resourcespans\"";
constexpr size_t kNoHead = static_cast<size_t>(-1);

}  // namespace

void DocumentSplitter::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t used = 0;
    switch (state_) {
      case State::kBetween: used = Between(bytes); break;
      case State::kInside: used = Inside(bytes); break;
      case State::kStray: {
        used = std::min(bytes.size(), bytes.find('\n'));
        if (text_.size() < kMaxStray) text_.append(bytes.substr(0, std::min(used, kMaxStray)));
        if (used < bytes.size()) Emit(false, true);
        break;
      }
    }
    bytes.remove_prefix(used);
  }
}

size_t DocumentSplitter::Between(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (c == '\n') ++line_;
    // Commas and brackets between documents: elements of an array. A byte-order mark may stand in front.
    if (c == '\n' || c == ' ' || c == '\t' || c == '\r' || c == ',' || c == '[' || c == ']' || c == '\xEF' ||
        c == '\xBB' || c == '\xBF' || c == '\x1E') {
      continue;
    }
    begin_line_ = line_;
    state_ = c == '{' ? State::kInside : State::kStray;
    depth_ = 0;
    return i;
  }
  return bytes.size();
}

/// Follows the front of the current line; true when it is now known to open an export request. Blanks, underscores and
/// case do not count.
bool DocumentSplitter::BeginsAnother(char c) {
  if (c == '\n') {
    head_ = head_bytes_ = 0;
    return false;
  }
  if (head_ == kNoHead) return false;
  ++head_bytes_;
  if (c == ' ' || c == '_') return false;
  const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  head_ = lower == kHead[head_] ? head_ + 1 : kNoHead;
  if (head_ != kHead.size()) return false;
  head_ = kNoHead;
  return true;
}

size_t DocumentSplitter::Inside(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (c == '\n') ++line_;
    if (BeginsAnother(c) && line_ > begin_line_) {
      // A line was torn: a whole document never stands at the front of a line inside another one.
      Keep(bytes.substr(0, i + 1));
      const size_t length = std::min(head_bytes_, text_.size());
      std::string next = text_.substr(text_.size() - length);
      text_.resize(text_.size() - length);
      Emit(true, false);
      text_ = std::move(next);
      begin_line_ = line_;
      state_ = State::kInside;
      depth_ = 1;
      return i + 1;
    }
    if (escaped_) {
      escaped_ = false;
    } else if (quoted_) {
      if (c == '\\') escaped_ = true;
      if (c == '"') quoted_ = false;
    } else if (c == '"') {
      quoted_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      if (--depth_ == 0) {
        Keep(bytes.substr(0, i + 1));
        Emit(false, false);
        return i + 1;
      }
    }
  }
  Keep(bytes);
  return bytes.size();
}

void DocumentSplitter::Keep(std::string_view part) {
  if (too_long_ || part.size() > max_bytes_ - std::min(max_bytes_, text_.size())) {
    too_long_ = true;
    text_.clear();
    return;
  }
  text_.append(part);
}

void DocumentSplitter::Emit(bool cut, bool stray) {
  sink_({.text = text_, .line = begin_line_, .too_long = too_long_, .cut = cut, .stray = stray});
  text_.clear();
  state_ = State::kBetween;
  head_ = kNoHead;
  quoted_ = false;
  escaped_ = false;
  too_long_ = false;
}

void DocumentSplitter::Finish() {
  if (state_ == State::kInside) Emit(true, false);
  if (state_ == State::kStray) Emit(false, true);
}

std::string CloseCutDocument(std::string_view text) {
  std::string open;
  bool quoted = false;
  size_t in_spans = 0;  // length up to the last whole element
  size_t in_list = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (open.size() > kInSpans.size() + 64) return {};  // nothing of ours nests so deep
      open += c;
    } else if ((c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
      if (c == '}' && open == kInSpans) in_spans = i + 1;
      if (c == '}' && open == kInList) in_list = i + 1;
    }
  }
  // An element of the outer list that ends behind the last whole span holds that span.
  const bool inner = in_spans > in_list;
  const size_t length = inner ? in_spans : in_list;
  if (length == 0) return {};
  std::string out(text.substr(0, length));
  const std::string_view closers = inner ? kInSpans : kInList;
  for (auto it = closers.rbegin(); it != closers.rend(); ++it) out += *it == '{' ? '}' : ']';
  return out;
}

}  // namespace teller::ingest::otlp
