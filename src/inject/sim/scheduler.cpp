#include "inject/sim/scheduler.hpp"

#include <algorithm>
#include <utility>

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

void Scheduler::Take(Batch& batch, Request* request, int64_t tokens, bool decodes) {
  const int64_t before = request->computed;
  batch.parts.push_back({request, tokens, decodes});
  batch.shape.tokens += tokens;
  ++batch.shape.sequences;
  if (decodes) {
    ++batch.decodes;
    batch.decode_tokens += tokens;
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
    const int64_t tokens = 1 + options_.drafts;
    bool fits = Grow(request, request->computed + tokens);
    while (!fits && Retract(batch, request)) fits = Grow(request, request->computed + tokens);
    if (fits) Take(batch, request, tokens, true);
  }
}

void Scheduler::Prompts(Batch& batch, Nanos now) {
  int64_t left = (options_.chunks ? options_.budget : int64_t{1} << 20) - batch.shape.tokens;
  for (Request* request : running_) {
    const int64_t missing = request->wanted() - request->computed;
    if (left <= 0 || missing <= 0 || (missing == 1 && request->made > 0)) continue;
    const int64_t tokens = std::min(left, missing);
    if (!Grow(request, request->computed + tokens)) continue;
    Take(batch, request, tokens, false);
    left -= tokens;
  }
  if (batch.retracted > 0) return;
  while (left > 0 && !waiting_.empty() && running_.size() + loading_.size() < options_.most_running) {
    Request* request = waiting_.front();
    if (request->remote > 0 && request->asked == 0) {
      if (!Fetch(now)) break;
      continue;
    }
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
    Take(batch, request, tokens, false);
    batch.cached += cached;
    ++batch.admitted;
    left -= tokens;
  }
}

/// Asks for the first waiting request's keys; its room is kept meanwhile. False when there is none.
bool Scheduler::Fetch(Nanos now) {
  Request* request = waiting_.front();
  if (BlocksFor(request->prompt) + options_.blocks / 100 > room() || !Grow(request, request->prompt)) return false;
  waiting_.pop_front();
  const KvLink::Fetched& fetched = link_->Fetch(request->remote, now);
  request->asked = now;
  request->ready = fetched.end;
  request->broken = fetched.broken;
  loading_.push_back(request);
  return true;
}

/// Requests whose keys are here begin to run.
void Scheduler::Arrivals(Nanos now) {
  for (size_t k = 0; k < loading_.size();) {
    Request* request = loading_[k];
    if (request->ready > now) {
      ++k;
      continue;
    }
    loading_.erase(loading_.begin() + static_cast<std::ptrdiff_t>(k));
    if (request->broken) {
      broken_.push_back(request);
      if (!options_.computes_lost) {
        used_ -= std::exchange(request->blocks, 0);
        continue;
      }
    }
    request->computed = request->broken ? 0 : std::min(request->remote, request->prompt - 1);
    asked_ += static_cast<uint64_t>(request->prompt);
    found_ += static_cast<uint64_t>(request->computed);
    request->cached = request->computed;
    request->admitted = now;
    if (options_.made_elsewhere && !request->broken) {
      request->computed = request->prompt;
      request->made = 1;
      request->first = now;
      request->tokens.push_back(now + kOutput);
    }
    running_.push_back(request);
  }
}

Nanos Scheduler::NextReady() const {
  Nanos next = 0;
  for (const Request* request : loading_) next = next == 0 ? request->ready : std::min(next, request->ready);
  return next;
}

bool Scheduler::Drop(Request* request) {
  const auto erase = [&](auto& list) {
    const auto found = std::find(list.begin(), list.end(), request);
    if (found == list.end()) return false;
    list.erase(found);
    return true;
  };
  if (!erase(running_) && !erase(waiting_) && !erase(loading_)) return false;
  used_ -= std::exchange(request->blocks, 0);
  return true;
}

Batch Scheduler::Next(Nanos now) {
  Batch batch;
  Arrivals(now);
  if (!options_.prompts_first) {
    Decodes(batch);
    Prompts(batch, now);
    return batch;
  }
  Prompts(batch, now);
  if (batch.parts.empty()) Decodes(batch);
  return batch;
}

/// How many of the proposed tokens were right.
int Scheduler::Accepted() {
  int right = 0;
  while (right < options_.drafts && rng_.Unit() < options_.accept) ++drafts_.by_position[static_cast<size_t>(right++)];
  ++drafts_.drafts;
  drafts_.proposed += static_cast<uint64_t>(options_.drafts);
  drafts_.accepted += static_cast<uint64_t>(right);
  return right;
}

void Scheduler::Done(Batch& batch, Nanos now) {
  for (const Batch::Part& part : batch.parts) {
    Request* request = part.request;
    int64_t made = 1;
    if (part.decodes) {
      if (options_.drafts > 0) made += Accepted();
      made = std::min(made, request->output - request->made);
      request->computed += made;
    } else {
      request->computed += part.tokens;
      if (request->computed < request->wanted()) continue;
    }
    request->made += made;
    batch.made += static_cast<int>(made);
    if (request->first == 0) request->first = now;
    request->tokens.insert(request->tokens.end(), static_cast<size_t>(made), now + kOutput);
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
