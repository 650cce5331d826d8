#include "ingest/log/line_splitter.hpp"

#include <algorithm>

namespace teller::ingest::log {

void LineSplitter::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (pending_cr_) {
      if (bytes.front() == '\r') {  // several in a row mean one
        bytes.remove_prefix(1);
        continue;
      }
      pending_cr_ = false;
      if (bytes.front() != '\n') End(false);
    }
    const size_t end = bytes.find_first_of("\r\n");
    Keep(bytes.substr(0, end));
    if (end == std::string_view::npos) return;
    if (bytes[end] == '\n') {
      End(true);
    } else {
      pending_cr_ = true;
      any_ = true;
    }
    bytes.remove_prefix(end + 1);
  }
}

void LineSplitter::Finish() {
  pending_cr_ = false;
  if (any_) End(true);
}

void LineSplitter::Keep(std::string_view part) {
  if (part.empty()) return;
  any_ = true;
  const size_t room = max_bytes_ - std::min(max_bytes_, text_.size());
  text_.append(part.substr(0, room));
  if (part.size() <= room) return;
  const std::string_view beyond = part.substr(room);
  // The tail begins inside the kept part, so that it has no gap.
  if (cut_ == 0) tail_ = text_.substr(text_.size() - std::min(text_.size(), kSegmentTail));
  cut_ += beyond.size();
  if (beyond.size() >= kSegmentTail) {
    tail_ = beyond.substr(beyond.size() - kSegmentTail);
    return;
  }
  tail_ += beyond;
  if (tail_.size() > 8 * kSegmentTail) tail_.erase(0, tail_.size() - kSegmentTail);
}

void LineSplitter::End(bool newline) {
  sink_({.text = text_, .line = line_, .cut = cut_, .tail = tail_, .same_line = same_line_});
  text_.clear();
  tail_.clear();
  cut_ = 0;
  same_line_ = !newline;
  any_ = false;
  if (newline) ++line_;
}

void StripEscapes(std::string_view text, std::string& out) {
  out.clear();
  size_t i = 0;
  while (i < text.size()) {
    const size_t plain = text.find_first_of(std::string_view("\x1b\0", 2), i);
    out.append(text.substr(i, plain == std::string_view::npos ? plain : plain - i));
    if (plain == std::string_view::npos) return;
    i = plain;
    if (text[i] == '\0') {
      out.push_back(' ');
      ++i;
      continue;
    }
    ++i;
    if (i >= text.size()) return;
    if (text[i] == '[') {  // CSI: parameters, then one final byte @..~
      ++i;
      while (i < text.size() && (text[i] < '@' || text[i] > '~') && static_cast<unsigned char>(text[i]) >= 0x20) ++i;
      if (i < text.size()) ++i;
    } else if (text[i] == ']') {  // OSC: until BEL or ESC backslash
      const size_t end = text.find_first_of("\x07\x1b", i);
      if (end == std::string_view::npos) return;
      i = end + 1;
      if (text[end] == '\x1b' && i < text.size() && text[i] == '\\') ++i;
    } else {
      ++i;
    }
  }
}

uint64_t InvalidUtf8(std::string_view text) {
  uint64_t bad = 0;
  size_t i = 0;
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  while (i < text.size()) {
    const unsigned char b = byte(i);
    if (b < 0x80) {
      ++i;
      continue;
    }
    const size_t more = b >= 0xC2 && b <= 0xDF ? 1 : b >= 0xE0 && b <= 0xEF ? 2 : b >= 0xF0 && b <= 0xF4 ? 3 : 0;
    size_t k = 1;
    while (k <= more && i + k < text.size() && (byte(i + k) & 0xC0) == 0x80) ++k;
    const bool overlong = more >= 2 && i + 1 < text.size() &&
                          ((b == 0xE0 && byte(i + 1) < 0xA0) || (b == 0xED && byte(i + 1) > 0x9F) ||
                           (b == 0xF0 && byte(i + 1) < 0x90) || (b == 0xF4 && byte(i + 1) > 0x8F));
    if (more == 0 || k != more + 1 || overlong) {
      ++bad;
      ++i;
    } else {
      i += more + 1;
    }
  }
  return bad;
}

}  // namespace teller::ingest::log
