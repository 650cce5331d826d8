#include "inject/sim/scheduler.hpp"

#include <algorithm>

namespace teller::inject::sim {

namespace {

constexpr Nanos kOutput = 400 * base::kMicro;  // turning a token into text and sending it

}  // namespace

bool Scheduler::Grow(Request* request, int64_t tokens) {
  const int64_t more = BlocksFor(tokens) - request->blocks;
  if (more > room()) return false;
  if (more > 0) {
    request->blocks += more;
    used_ += more;
  }
  return true;
}

bool Scheduler::Retract(Batch& batch, const Request* keep) {
  for (size_t k = running_.size(); k-- > 0;) {
    Request* victim = running_[k];
    const bool taken =
        std::any_of(batch.parts.begin(), batch.parts.end(), [&](const Batch::Part& p) { return p.request == victim; });
    if (victim == keep || taken) continue;
    used_ -= victim->blocks;
    batch.gained += victim->blocks * kBlock;
    victim->blocks = 0;
    victim->computed = 0;
    ++victim->retractions;
    ++retractions_;
    ++batch.retracted;
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(k));
    waiting_.push_front(victim);
    return true;
  }
  return false;
}

void Scheduler::Take(Batch& batch, Request* request, int64_t tokens) {
  const int64_t before = request->computed;
  batch.parts.push_back({request, tokens});
  batch.shape.tokens += tokens;
  ++batch.shape.sequences;
  if (request->computed + 1 == request->wanted() && tokens == 1 && request->made > 0) {
    ++batch.decodes;
    batch.shape.context += before + 1;
    return;
  }
  ++batch.prompts;
  batch.prompt_tokens += tokens;
  batch.shape.pairs += tokens * (before + tokens) - tokens * (tokens - 1) / 2;
}

void Scheduler::Decodes(Batch& batch) {
  // A copy: retractions change the list while it is walked.
  const std::vector<Request*> running = running_;
  for (Request* request : running) {
    if (request->computed + 1 < request->wanted() || request->made == 0) continue;  // its prompt is not done
    if (std::find(running_.begin(), running_.end(), request) == running_.end()) continue;
    bool fits = Grow(request, request->wanted());
    while (!fits && Retract(batch, request)) fits = Grow(request, request->wanted());
    if (fits) Take(batch, request, 1);
  }
}

void Scheduler::Prompts(Batch& batch, Nanos now) {
  int64_t left = (options_.chunks ? options_.budget : int64_t{1} << 20) - batch.shape.tokens;
  for (Request* request : running_) {
    const int64_t missing = request->wanted() - request->computed;
    if (left <= 0 || missing <= 0 || (missing == 1 && request->made > 0)) continue;
    const int64_t tokens = std::min(left, missing);
    if (!Grow(request, request->computed + tokens)) continue;
    Take(batch, request, tokens);
    left -= tokens;
  }
  if (batch.retracted > 0) return;
  while (options_.admits && left > 0 && !waiting_.empty() && running_.size() < options_.most_running) {
    Request* request = waiting_.front();
    const int64_t cached = options_.cache && request->made == 0 ? request->shared : 0;
    const int64_t tokens = std::min(left, request->wanted() - cached);
    // Some room is kept for sequences that grow.
    if (BlocksFor(cached + tokens) + options_.blocks / 100 > room()) break;
    waiting_.pop_front();
    request->computed = request->cached = cached;
    Grow(request, cached + tokens);
    asked_ += request->prompt;
    found_ += cached;
    if (request->admitted == 0) request->admitted = now;
    running_.push_back(request);
    Take(batch, request, tokens);
    batch.cached += cached;
    ++batch.admitted;
    left -= tokens;
  }
}

Batch Scheduler::Next(Nanos now) {
  Batch batch;
  if (!options_.prompts_first) {
    Decodes(batch);
    Prompts(batch, now);
    return batch;
  }
  Prompts(batch, now);
  if (batch.parts.empty()) Decodes(batch);
  return batch;
}

void Scheduler::Done(const Batch& batch, Nanos now) {
  for (const Batch::Part& part : batch.parts) {
    Request* request = part.request;
    request->computed += part.tokens;
    if (request->computed < request->wanted()) continue;
    ++request->made;
    if (request->first == 0) request->first = now;
    request->tokens.push_back(now + kOutput);
    if (request->made < request->output) continue;
    request->finished = now;
    used_ -= request->blocks;
    request->blocks = 0;
    running_.erase(std::find(running_.begin(), running_.end(), request));
  }
}

int64_t Scheduler::tokens() const {
  int64_t sum = 0;
  for (const Request* request : running_) sum += request->computed;
  return sum;
}

}  // namespace teller::inject::sim
