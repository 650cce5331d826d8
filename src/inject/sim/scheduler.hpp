#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

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
  int64_t prompt = 0;
  int64_t output = 0;
  int64_t shared = 0;  ///< leading tokens that other prompts have too
  int64_t cached = 0;  ///< of these, found in the cache
  int64_t computed = 0;
  int64_t made = 0;
  int64_t blocks = 0;
  int retractions = 0;
  std::vector<Nanos> tokens;  ///< as the client saw them

  int64_t wanted() const { return prompt + made; }  ///< tokens whose keys have to be there before the next one
};

struct SchedulerOptions {
  int64_t budget = 2048;  ///< new tokens a step
  int64_t blocks = 6000;  ///< of the KV cache
  size_t most_running = 48;
  bool prompts_first = false;  ///< a step holds prompts or decoding sequences, never both
  bool chunks = true;          ///< prompts are cut to the budget
  bool cache = true;           ///< shared prefixes are found
  bool admits = true;
};

/// What one step serves.
struct Batch {
  struct Part {
    Request* request = nullptr;
    int64_t tokens = 0;
  };
  std::vector<Part> parts;
  Shape shape;
  int prompts = 0;
  int64_t prompt_tokens = 0;
  int decodes = 0;
  int admitted = 0;
  int64_t cached = 0;
  int retracted = 0;
  int64_t gained = 0;  ///< tokens whose room a retraction freed
};

/// Continuous batching with chunked prompts over a paged KV cache: sequences that find no block throw out the youngest
/// one, which is computed again. Requests are not owned. Threads: confined.
class Scheduler {
 public:
  explicit Scheduler(SchedulerOptions options) : options_(options) {}

  SchedulerOptions& options() { return options_; }
  void Add(Request* request) { waiting_.push_back(request); }
  /// Chooses the next step's work. Empty when there is none.
  Batch Next(Nanos now);
  /// The step is over: tokens exist. Finished requests leave.
  void Done(const Batch& batch, Nanos now);

  size_t running() const { return running_.size(); }
  size_t waiting() const { return waiting_.size(); }
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
  void Take(Batch& batch, Request* request, int64_t tokens);
  void Prompts(Batch& batch, Nanos now);
  void Decodes(Batch& batch);

  SchedulerOptions options_;
  int64_t full_ = options_.blocks;
  int64_t used_ = 0;
  std::deque<Request*> waiting_;
  std::vector<Request*> running_;
  uint64_t retractions_ = 0;
  uint64_t asked_ = 0;
  uint64_t found_ = 0;
};

}  // namespace teller::inject::sim
