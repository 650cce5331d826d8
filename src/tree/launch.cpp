#include "tree/launch.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

namespace teller::tree {

namespace {

using trace::Nanos;
using trace::SpanRow;

/// An API call that may have launched something.
struct Call {
  uint32_t process = 0;
  uint32_t correlation = 0;
  SpanRow row;

  auto key() const { return std::pair(process, correlation); }
};

/// All API calls with a correlation id, ordered by (process, correlation, begin).
std::vector<Call> FindCalls(const trace::Store& store) {
  std::vector<Call> calls;
  for (size_t i = 0; i < store.gpu_args.size(); ++i) {
    const uint32_t row = store.gpu_args.row(i);
    const auto& args = store.gpu_args.value(i);
    if (args.correlation == 0 || !trace::IsApiCall(store.kind(row))) continue;
    calls.push_back({store.track_of(row).process.value(), args.correlation, SpanRow(row)});
  }
  const auto before = [&store](const Call& a, const Call& b) {
    const auto key = [&store](const Call& c) { return std::tuple(c.key(), store.spans.begin[c.row.value()], c.row); };
    return key(a) < key(b);
  };
  if (!std::is_sorted(calls.begin(), calls.end(), before)) std::sort(calls.begin(), calls.end(), before);
  return calls;
}

/// Finds the calls of a key. Streams ask in nearly the order in which calls were made, so the search begins behind the
/// last answer.
class CallIndex {
 public:
  explicit CallIndex(const std::vector<Call>& calls) : calls_(calls) {}

  std::vector<Call>::const_iterator Find(uint32_t process, uint32_t correlation) {
    const std::pair key(process, correlation);
    for (size_t step = 0; step < kNear && near_ + step < calls_.size(); ++step) {
      if (calls_[near_ + step].key() != key) continue;
      const size_t at = near_ + step;
      if (at > 0 && calls_[at - 1].key() == key) break;
      near_ = at;
      return calls_.begin() + static_cast<std::ptrdiff_t>(at);
    }
    const auto it = std::lower_bound(calls_.begin(), calls_.end(), key,
                                     [](const Call& call, const auto& want) { return call.key() < want; });
    if (it == calls_.end() || it->key() != key) return calls_.end();
    near_ = static_cast<size_t>(it - calls_.begin());
    return it;
  }

 private:
  static constexpr size_t kNear = 4;
  const std::vector<Call>& calls_;
  size_t near_ = 0;
};

}  // namespace

void LinkLaunches(const trace::Store& store, trace::Trees& trees) {
  const auto calls = FindCalls(store);
  CallIndex index(calls);
  for (size_t i = 0; i < store.gpu_args.size(); ++i) {
    const uint32_t row = store.gpu_args.row(i);
    const auto& args = store.gpu_args.value(i);
    if (args.correlation == 0 || !trace::IsGpuWork(store.kind(row))) continue;
    ++trees.gpu_work;
    auto call = index.Find(store.track_of(row).process.value(), args.correlation);
    if (call == calls.end()) {
      ++trees.gpu_work_unlaunched;
      continue;
    }
    // Ids come again when their counter wraps: the launch is the last call that began before the work. Clocks of host
    // and device differ by microseconds, so work may seem to begin first; then the first call it is.
    const auto key = call->key();
    for (auto next = call + 1; next != calls.end() && next->key() == key; ++next) {
      if (store.spans.begin[next->row.value()] > store.spans.begin[row]) break;
      call = next;
    }
    ++trees.gpu_work_linked;
    trees.launches.push_back({call->row, SpanRow(row)});
  }
}

}  // namespace teller::tree
