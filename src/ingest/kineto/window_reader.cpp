#include "ingest/kineto/window_reader.hpp"

#include <algorithm>
#include <cstring>

#include "ingest/kineto/splitter.hpp"

namespace teller::ingest {

namespace {

constexpr size_t kWindow = 1u << 20;     // fits a core's second-level cache together with what is parsed from it
constexpr size_t kTopChunk = 64u << 10;  // text before the events is short as a rule

bool IsFiller(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ',';
}

std::string_view TrimFiller(std::string_view text) {
  while (!text.empty() && IsFiller(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsFiller(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

WindowReader::WindowReader(std::unique_ptr<base::ByteSource> source, const base::Limits& limits)
    : source_(std::move(source)), limits_(limits) {}

base::Result<bool> WindowReader::Next(Window& window) {
  while (phase_ != Phase::kEnd) {
    if (phase_ == Phase::kTop) {
      auto more = ReadTop();
      if (!more) return more.error();
      continue;
    }
    auto got = ReadEvents(window);
    if (!got || *got) return got;
  }
  return false;
}

base::Result<bool> WindowReader::ReadTop() {
  while (true) {
    std::string_view text = pending_;
    const auto stop = top_.Feed(text);
    pending_at_ += pending_.size() - text.size();
    pending_.erase(0, pending_.size() - text.size());
    if (stop == TopLevelScanner::Stop::kEvents) {
      phase_ = Phase::kEvents;
      return true;
    }
    if (stop == TopLevelScanner::Stop::kBroken) outcome_.broken_top = true;
    if (stop != TopLevelScanner::Stop::kNeedMore) {
      if (auto drained = Drain(); !drained) return drained.error();
      break;
    }
    pending_.resize(kTopChunk);
    auto got = source_->Read(pending_.data(), kTopChunk);
    if (!got) return got.error();
    pending_.resize(*got);
    outcome_.bytes += *got;
    if (*got == 0) break;
  }
  Finish({});
  return false;
}

base::Result<size_t> WindowReader::Fill(Window& window, size_t held, size_t want) {
  window.buffer.Grow(1 + want + 1 + kParserPadding, 1 + held);
  if (held < want && !at_end_) {
    auto got = source_->Read(window.buffer.data() + 1 + held, want - held);
    if (!got) return got.error();
    outcome_.bytes += *got;
    at_end_ = *got < want - held;
    held += *got;
  }
  return held;
}

base::Status WindowReader::Drain() {
  do {
    outcome_.trailing = outcome_.trailing || !TrimFiller(pending_).empty();
    pending_.resize(kTopChunk);
    auto got = source_->Read(pending_.data(), kTopChunk);
    if (!got) return got.error();
    pending_.resize(*got);
    outcome_.bytes += *got;
  } while (!pending_.empty());
  return {};
}

/// Drops what is held up to the next sure element. Without one everything goes, but for what may be the front half of
/// the pattern that marks one.
bool WindowReader::SkipToElement(Window& window, size_t& held, size_t from) {
  char* data = window.buffer.data() + 1;
  const size_t next = FindElementAfter({data, held}, from);
  const size_t drop = next != Cut::kNone ? next : held - std::min(held, kParserPadding);
  std::memmove(data, data + drop, held - drop);
  held -= drop;
  pending_at_ += drop;
  return next != Cut::kNone;
}

base::Result<bool> WindowReader::ReadEvents(Window& window) {
  size_t want = std::max(kWindow, pending_.size());
  window.buffer.Grow(1 + want + 1 + kParserPadding, 0);
  std::memcpy(window.buffer.data() + 1, pending_.data(), pending_.size());
  size_t held = pending_.size();
  pending_.clear();
  bool skipping = false;
  while (true) {
    auto filled = Fill(window, held, want);
    if (!filled) return filled.error();
    held = *filled;
    if (skipping) {
      skipping = !SkipToElement(window, held, 0);
      if (skipping && at_end_) {
        Finish({});
        return false;
      }
      want = std::max(kWindow, held);
      continue;
    }
    const Cut cut = FindCut({window.buffer.data() + 1, held});
    if (cut.boundary > 0 || cut.array_end != Cut::kNone || at_end_) return Emit(window, cut, held);
    if (held < limits_.max_event_bytes) {
      want = std::max(want, held) * 2;
      continue;
    }
    if (outcome_.oversize++ == 0) outcome_.oversize_at = pending_at_;
    skipping = !SkipToElement(window, held, 1);
    want = std::max(kWindow, held);
  }
}

/// Wraps the whole elements of the `held` bytes as a window of their own and keeps the rest. True when there are any.
bool WindowReader::Emit(Window& window, const Cut& cut, size_t held) {
  char* data = window.buffer.data() + 1;
  const bool closed = cut.array_end != Cut::kNone;
  const size_t whole = closed ? cut.array_end : cut.boundary;
  const size_t consumed = closed ? whole + 1 : whole;
  pending_.assign(data + consumed, held - consumed);
  const std::string_view elements = TrimFiller({data, whole});
  if (!elements.empty()) {
    const auto lead = static_cast<size_t>(elements.data() - data);
    window.offset = pending_at_ + lead;
    window.index = windows_++;
    window.deep = cut.deepest > limits_.max_json_depth;
    if (lead > 0) std::memmove(data, elements.data(), elements.size());
    window.buffer.data()[0] = '[';
    data[elements.size()] = ']';
    window.size = elements.size() + 2;
  }
  pending_at_ += consumed;
  if (closed) {
    phase_ = Phase::kTop;
    top_.EventsClosed();
  } else if (at_end_) {
    Finish(pending_);
  }
  return !elements.empty();
}

void WindowReader::Finish(std::string_view leftover) {
  outcome_.damage = source_->damage();
  outcome_.no_events = !top_.saw_events();
  outcome_.unclosed = top_.saw_events() && !top_.complete();
  const std::string_view rest = TrimFiller(leftover);
  if (!rest.empty()) {
    outcome_.cut_event = true;
    outcome_.cut_at = pending_at_ + static_cast<uint64_t>(rest.data() - leftover.data());
  }
  phase_ = Phase::kEnd;
}

}  // namespace teller::ingest
