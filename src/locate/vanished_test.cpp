#include "locate/vanished.hpp"

#include <gtest/gtest.h>

#include "locate/test_counters.hpp"

namespace teller::locate {
namespace {

using trace::Nanos;

constexpr int kSamples = 20;

/// A server whose counters end at `last` while those of the machine go on, a log, and a request that arrived before.
struct Service {
  trace::Store store;
  trace::Trees trees;

  explicit Service(int last) {
    store.files.push_back({.path = "host.jsonl", .kind = "host-counters"});
    Counter("llama-server", "cpu_s", last);
    Counter("", "busy_s", kSamples);
    Log("srv  update_slots: all slots are idle", 1);
    Request(4, -1);
  }
  void Counter(const std::string& process, const std::string& name, int samples) {
    AddRate(store, process, name, samples - 1, [](int) { return 1.0; });
  }
  void Log(const std::string& message, int at) {
    trace::LogRecord record;
    record.message = message;
    record.at = kEpoch + at * kHalf;
    store.logs.push_back(record);
  }
  void Request(int arrival, int finished) {
    trace::RequestRecord record;
    record.arrival = kEpoch + arrival * kHalf;
    if (finished >= 0) record.finished = kEpoch + finished * kHalf;
    trace::Request request;
    request.records = {static_cast<uint32_t>(store.request_records.size())};
    request.arrival = record.arrival;
    request.finished = record.finished;
    if (finished >= 0) request.e2e = record.finished - record.arrival;
    store.request_records.push_back(record);
    trees.requests.push_back(request);
  }
  size_t Found() const { return FindVanished(store, trees, {}).size(); }
};

TEST(Vanished, AServerThatIsGoneAndLeavesARequest) {
  const Service service(10);
  const auto found = FindVanished(service.store, service.trees, {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].fault, trace::FaultClass::kProcDeath);
  EXPECT_EQ(found[0].culprit.process, "llama-server");
  EXPECT_EQ(found[0].onset, kEpoch + 9 * kHalf);
  EXPECT_EQ(found[0].end, kEpoch + 10 * kHalf);
  EXPECT_TRUE(FindVanished(service.store, service.trees, found).empty());  // known already
}

TEST(Vanished, LinesAloneTellThatARequestWasBeingComputed) {
  Service service(10);
  service.trees.requests[0].records.clear();
  service.trees.requests[0].finished = kEpoch + 9 * kHalf;  // the last line about it
  EXPECT_EQ(service.Found(), 1u);
  service.trees.requests[0].finished = kEpoch + 5 * kHalf;
  EXPECT_EQ(service.Found(), 0u);
}

TEST(Vanished, AFileThatTellsOfOneProcessAfterTheOtherEndsWithOneOfThem) {
  Service service(kSamples);
  service.Counter("worker", "cpu_s", kSamples);
  // The last sample of a round is the worker's; the machine's and the server's come before it.
  for (trace::CounterSample& sample : service.store.counters) sample.at += sample.series.value() * kHalf / 4;
  EXPECT_EQ(service.Found(), 0u);
}

TEST(Vanished, TheFirstOfSeveralThatAreGoneIsNamed) {
  Service service(10);
  service.Counter("worker", "cpu_s", 8);
  service.Counter("helper", "cpu_s", 3);  // gone before there was a request
  const auto found = FindVanished(service.store, service.trees, {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].culprit.process, "worker");
}

TEST(Vanished, AServiceThatIsAskedToEndLongAfterwardsStillHadADeath) {
  Service asked(10);
  asked.Log("Received SIGTERM", 60);
  EXPECT_EQ(asked.Found(), 1u);
}

TEST(Vanished, NobodyDiedWhere) {
  EXPECT_EQ(Service(kSamples).Found(), 0u);  // the recorder ended with the process
  Service asked(10);
  asked.Log("[shutdown] API server: signal received, trigger=SIGTERM", 7);
  asked.Log("Received SIGTERM", 7);
  EXPECT_EQ(asked.Found(), 0u);
  Service idle(10);
  idle.store.request_records[0].finished = kEpoch + 6 * kHalf;
  EXPECT_EQ(idle.Found(), 0u);
  Service served(10);
  served.Request(8, 14);  // by another one
  EXPECT_EQ(served.Found(), 0u);
  Service silent(10);
  silent.store.logs.clear();
  EXPECT_EQ(silent.Found(), 0u);
}

}  // namespace
}  // namespace teller::locate
