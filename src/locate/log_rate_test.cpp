#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ingest/log/log_reader.hpp"
#include "locate/log_cause.hpp"

namespace teller::locate {
namespace {

using trace::FaultClass;
using trace::Finding;

std::vector<Finding> Alarms(const std::string& text) {
  trace::Store store;
  store.files.emplace_back();
  auto source = base::OpenMemory(text);
  EXPECT_TRUE(ingest::ReadLog(*source, trace::FileRow(0), store, {}).ok());
  ingest::ResolveLogTimes(store);
  std::vector<Finding> out;
  for (const Finding& f : FindLogCauses(store).findings) {
    if (f.false_alarm_probability < 0.01) out.push_back(f);
  }
  return out;
}

/// vLLM's line every ten seconds.
std::string Vllm(const std::vector<double>& lengths) {
  std::string text;
  for (size_t i = 0; i < lengths.size(); ++i) {
    text += fmt::format(
        "(APIServer pid=5) INFO 08-21 10:{:02}:{:02} [metrics.py:120] SpecDecoding metrics: Mean acceptance length: "
        "{:.2f}, Accepted throughput: 3.44 tokens/s, Drafted throughput: 6.18 tokens/s, Accepted: 97 tokens, Drafted: "
        "174 tokens, Per-position acceptance rate: 0.879, 0.500, 0.293, Avg Draft acceptance rate: 55.7%\n",
        i / 6, i % 6 * 10, lengths[i]);
  }
  return text;
}

std::string Sglang(const std::vector<double>& lengths) {
  std::string text;
  for (size_t i = 0; i < lengths.size(); ++i) {
    text += fmt::format(
        "[2026-08-02 00:02:{:02}] Decode batch, #running-req: 1, #token: 274, token usage: 0.00, accept len: {:.2f}, "
        "accept rate: 0.09, cuda graph: True, gen throughput (token/s): 17.39, #queue-req: 0\n",
        i, lengths[i]);
  }
  return text;
}

TEST(LogRate, LongContextsThatADraftCannotFollowAreTheWorks) {
  const auto usage = [](double before, double after) {
    std::string text;
    for (int i = 0; i < 10; ++i) {
      text += fmt::format(
          "[2026-08-02 00:02:{:02}] Decode batch, #running-req: 1, #token: 274, token usage: {:.2f}, accept len: "
          "{:.2f}, "
          "accept rate: 0.09, cuda graph: True, gen throughput (token/s): 17.39, #queue-req: 0\n",
          i, i < 4 ? before : after, i < 4 ? 2.5 : 1.02);
    }
    return text;
  };
  EXPECT_TRUE(Alarms(usage(0.02, 0.18)).empty());
  EXPECT_EQ(Alarms(usage(0.10, 0.12)).size(), 1u);
}

TEST(LogRate, AcceptanceThatCollapses) {
  for (const auto& text :
       {Vllm({2.7, 2.5, 2.6, 2.4, 1.1, 1.05, 1.1, 1.0}), Sglang({2.7, 2.5, 2.6, 2.4, 1.1, 1.05, 1.1, 1.0})}) {
    const auto alarms = Alarms(text);
    ASSERT_EQ(alarms.size(), 1u) << text;
    EXPECT_EQ(alarms[0].fault, FaultClass::kSpecCollapse);
  }
  EXPECT_EQ(Alarms(Vllm({1.0, 1.1, 1.05, 1.0, 1.1, 1.0})).size(), 1u);  // from the first line on
}

TEST(LogRate, AcceptanceVaries) {
  EXPECT_TRUE(Alarms(Vllm({2.7, 2.5, 2.6, 1.9, 1.8, 2.4, 1.7, 1.6, 1.8})).empty());
  EXPECT_TRUE(Alarms(Vllm({2.7, 2.5, 2.6, 1.1, 2.4, 1.1, 2.5})).empty());
  EXPECT_TRUE(Alarms(Vllm({1.1, 1.0, 1.1})).empty());
  EXPECT_TRUE(Alarms(Sglang({1.4, 1.5, 1.4, 1.3, 1.4, 1.5, 1.4})).empty());
}

TEST(LogRate, TransfersOverNixl) {
  std::string text;
  for (int i = 0; i < 3; ++i) {
    text += fmt::format(
        "(Worker_TP0 pid=7) ERROR 01-09 15:09:3{} [nixl_connector.py:1198] NIXL transfer failure: "
        "transfer_setup_failed. Marking blocks as invalid | Context: {{'failure_type': 'transfer_setup_failed'}}\n",
        i);
  }
  const auto alarms = Alarms(text);
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0].fault, FaultClass::kKvTransferStall);
  std::string well;
  for (int i = 0; i < 3; ++i)
    well += fmt::format("(Worker_TP0 pid=7) INFO 01-09 15:09:3{} [nixl_connector.py:98] NIXL transfer setup done\n", i);
  EXPECT_TRUE(Alarms(well).empty());
}

TEST(LogRate, NamesThatCannotBeResolved) {
  std::string text;
  for (int i = 0; i < 4; ++i) {
    text += fmt::format(
        "(APIServer pid=7) WARNING 01-09 15:09:3{} [hub.py:98] request to hub.example failed: [Errno -3] "
        "Temporary failure in name resolution, retrying\n",
        i);
    const auto alarms = Alarms(text);
    EXPECT_EQ(alarms.size(), i < 2 ? 0u : 1u) << i;
    for (const Finding& alarm : alarms) EXPECT_EQ(alarm.fault, FaultClass::kFrontendNet);
  }
}

}  // namespace
}  // namespace teller::locate
