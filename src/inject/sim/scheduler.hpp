#pragma once

#include <array>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "inject/sim/parts.hpp"
#include "inject/sim/tables.hpp"

namespace teller::inject::sim {

/// A request on its way through one replica. Times are true ones; 0 = not yet.
struct Request {
  std::string id;
  Nanos send = 0;     ///< by the client
  Nanos arrival = 0;  ///< at the server
  Nanos queued = 0;   ///< at the scheduler, after the front end
  Nanos admitted = 0;
  Nanos first = 0;  ///< first token made
  Nanos finished = 0;
  Nanos work = 0;  ///< of the front end
  int64_t prompt = 0;
  int64_t output = 0;
  int64_t shared = 0;   ///< leading tokens that other prompts have too
  int64_t remote = 0;   ///< leading tokens whose keys come over a link
  Nanos asked = 0;      ///< for them
  Nanos ready = 0;      ///< when they are here
  bool broken = false;  ///< they never came
  bool failed = false;  ///< the server gave up
  Nanos gone = 0;       ///< when the server learns that the client gave up; 0 = it did not
  int64_t cached = 0;   ///< of these, found in the cache
  int64_t computed = 0;
  int64_t made = 0;
  int64_t blocks = 0;
  int retractions = 0;
  std::vector<Nanos> tokens;  ///< as the server sent them
  std::vector<Nanos> seen;    ///< as the client got them

  int64_t wanted() const { return prompt + made; }  ///< tokens whose keys have to be there before the next one
};

struct SchedulerOptions {
  int64_t budget = 2048;  ///< new tokens a step
  int64_t blocks = 6000;  ///< of the KV cache
  size_t most_running = 48;
  bool prompts_first = false;   ///< a step holds prompts or decoding sequences, never both
  bool chunks = true;           ///< prompts are cut to the budget
  bool cache = true;            ///< shared prefixes are found
  int drafts = 0;               ///< tokens proposed for each decoding sequence
  double accept = 0;            ///< chance that one is right when those before it were
  bool made_elsewhere = false;  ///< the first token comes with the keys
  bool computes_lost = true;    ///< prompts whose keys never came are computed here; else the request fails
};

/// What one step serves.
struct Batch {
  struct Part {
    Request* request = nullptr;
    int64_t tokens = 0;
    bool decodes = false;
  };
  std::vector<Part> parts;
  Shape shape;
  int prompts = 0;
  int64_t prompt_tokens = 0;
  int decodes = 0;
  int64_t decode_tokens = 0;  ///< with those that are only proposed
  int admitted = 0;
  int64_t cached = 0;
  int made = 0;  ///< tokens, known when it is done
  int retracted = 0;
  int64_t gained = 0;  ///< tokens whose room a retraction freed
};

/// What became of proposed tokens.
struct DraftCounts {
  uint64_t drafts = 0;
  uint64_t proposed = 0;
  uint64_t accepted = 0;
  std::array<uint64_t, 8> by_position{};
};

/// Continuous batching with chunked prompts over a paged KV cache: sequences that find no block throw out the youngest
/// one, which is computed again. Requests are not owned. Threads: confined.
class Scheduler {
 public:
  /// `link` brings keys of requests that have `remote` ones; may be null, is not owned.
  explicit Scheduler(SchedulerOptions options, KvLink* link = nullptr, uint64_t seed = 1)
      : options_(options), link_(link), rng_(seed) {}

  SchedulerOptions& options() { return options_; }
  void Add(Request* request) { waiting_.push_back(request); }
  /// Chooses the next step's work. Empty when there is none.
  Batch Next(Nanos now);
  /// The step is over: tokens exist. Finished requests leave.
  void Done(Batch& batch, Nanos now);
  /// Takes a request out, wherever it is. False when it has left already.
  bool Drop(Request* request);
  /// Requests whose keys never came, since the last call.
  std::vector<Request*> TakeBroken() { return std::exchange(broken_, {}); }
  /// When the next keys come; 0 = none are on their way.
  Nanos NextReady() const;

  size_t running() const { return running_.size(); }
  size_t waiting() const { return waiting_.size(); }
  size_t loading() const { return loading_.size(); }  ///< wait for their keys
  const DraftCounts& drafts() const { return drafts_; }
  int64_t tokens() const;
  /// Share of the cache in use; room that leaked away counts.
  double usage() const { return static_cast<double>(used_ + full_ - options_.blocks) / static_cast<double>(full_); }
  int64_t used() const { return used_; }
  uint64_t retractions() const { return retractions_; }
  uint64_t asked() const { return asked_; }  ///< prompt tokens looked up in the cache
  uint64_t found() const { return found_; }

 private:
  static constexpr int64_t kBlock = 16;

  static int64_t BlocksFor(int64_t tokens) { return (tokens + kBlock - 1) / kBlock; }
  int64_t room() const { return options_.blocks - used_; }
  bool Grow(Request* request, int64_t tokens);
  bool Retract(Batch& batch, const Request* keep);
  void Take(Batch& batch, Request* request, int64_t tokens, bool decodes);
  void Arrivals(Nanos now);
  bool Fetch(Nanos now);
  int Accepted();
  void Prompts(Batch& batch, Nanos now);
  void Decodes(Batch& batch);

  SchedulerOptions options_;
  KvLink* link_;
  base::Rng rng_;
  int64_t full_ = options_.blocks;
  int64_t used_ = 0;
  std::deque<Request*> waiting_;
  std::vector<Request*> loading_;
  std::vector<Request*> running_;
  std::vector<Request*> broken_;
  DraftCounts drafts_;
  uint64_t retractions_ = 0;
  uint64_t asked_ = 0;
  uint64_t found_ = 0;
};

}  // namespace teller::inject::sim
