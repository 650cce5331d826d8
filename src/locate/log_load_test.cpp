#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "ingest/log/log_reader.hpp"
#include "locate/locate.hpp"
#include "locate/log_cause.hpp"

namespace teller::locate {
namespace {

using trace::FaultClass;
using trace::Finding;

trace::Store Read(const std::string& text) {
  trace::Store store;
  store.files.emplace_back();
  auto source = base::OpenMemory(text);
  EXPECT_TRUE(ingest::ReadLog(*source, trace::FileRow(0), store, {}).ok());
  ingest::ResolveLogTimes(store);
  return store;
}

std::vector<Finding> Claims(const std::string& text) {
  return FindLogCauses(Read(text)).findings;
}

std::vector<Finding> Alarms(const std::string& text) {
  std::vector<Finding> out;
  for (const Finding& f : Claims(text)) {
    if (f.false_alarm_probability < 0.01) out.push_back(f);
  }
  return out;
}

/// vLLM's lines of each rank; the size is told where it is not 0.
std::string Loads(const std::vector<double>& seconds, double gib = 0) {
  std::string text;
  for (size_t r = 0; r < seconds.size(); ++r) {
    const std::string head = fmt::format("(Worker_TP{} pid={}) INFO 05-02 13:34:2{} ", r, 100 + r, r % 10);
    text += fmt::format("{}[default_loader.py:384] Loading weights took {:.2f} seconds\n", head, seconds[r]);
    if (gib > 0) {
      text += fmt::format("{}[gpu_model_runner.py:4566] Model loading took {:.2f} GiB memory and {:.6f} seconds\n",
                          head, gib, seconds[r] + 0.4);
    }
  }
  return text;
}

std::string SglangLoad(double seconds, double gib) {
  return fmt::format(
      "[2026-08-02 00:02:10] Load weight end. elapsed={:.2f} s, type=LlamaForCausalLM, dtype=torch.bfloat16, avail "
      "mem=60.10 GB, mem usage={:.2f} GB.\n",
      seconds, gib);
}

TEST(LogLoad, OneRankLoadsSlowly) {
  const auto alarms = Alarms(Loads({31, 30, 182, 29}));
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0].fault, FaultClass::kStorageSlow);
  EXPECT_EQ(alarms[0].culprit.rank, 2);
  EXPECT_TRUE(Alarms(Loads({31, 30, 45, 29})).empty());
  EXPECT_TRUE(Alarms(Loads({31, 182})).empty());  // which one is usual?
}

TEST(LogLoad, ARankThatKeepsMoreMayTakeLonger) {
  std::string text;
  for (const auto& [rank, gib, seconds] : {std::tuple(0, 2.0, 12.0), {1, 2.1, 13.0}, {2, 2.0, 12.0}, {3, 60.0, 75.0}}) {
    const std::string head = fmt::format("(Worker_TP{} pid={}) INFO 05-02 13:34:2{} ", rank, 100 + rank, rank);
    text += fmt::format("{}[default_loader.py:384] Loading weights took {:.2f} seconds\n", head, seconds);
    text += fmt::format("{}[gpu_model_runner.py:4566] Model loading took {:.2f} GiB memory\n", head, gib);
  }
  EXPECT_TRUE(Alarms(text).empty());
}

TEST(LogLoad, WhatAClientAsksIsNoLineOfTheEngine) {
  std::string text;
  for (int rank = 0; rank < 4; ++rank) {
    text += fmt::format(
        "(Worker_TP{} pid={}) INFO 05-02 13:34:21 [logger.py:41] Received request cmpl-1: prompt: 'Loading weights "
        "took {} seconds', params: None\n",
        rank, 100 + rank, rank == 2 ? 900 : 30);
  }
  EXPECT_TRUE(Alarms(text).empty());
}

TEST(LogLoad, AllRanksThatReadMoreSlowlyThanAnyStorageAreSuspectedOnly) {
  for (const auto& text : {Loads({900, 910}, 15), SglangLoad(600, 15)}) {
    const auto claims = Claims(text);
    ASSERT_EQ(claims.size(), 1u) << text;
    EXPECT_EQ(claims[0].fault, FaultClass::kStorageSlow);
    EXPECT_FALSE(claims[0].culprit.rank) << "no rank differs from the others";
    EXPECT_TRUE(Alarms(text).empty()) << "they may have been downloaded, or quantized";
    const trace::Diagnosis diagnosis = Locate(Read(text), {}, {});
    EXPECT_TRUE(diagnosis.findings.empty());
    ASSERT_EQ(diagnosis.suspects.size(), 1u);
    EXPECT_EQ(diagnosis.suspects[0].fault, FaultClass::kStorageSlow);
  }
  EXPECT_TRUE(Claims(Loads({150, 151}, 15)).empty());  // 214 MB/s
  EXPECT_TRUE(Claims(Loads({900, 910})).empty());      // of unknown size
  EXPECT_TRUE(Claims(Loads({40, 41}, 0.6)).empty());   // little, soon over
  EXPECT_TRUE(Claims(Loads({70, 71}, 0.2)).empty());   // little: what is not reading counts
  EXPECT_TRUE(Claims(SglangLoad(150, 15)).empty());
}

}  // namespace
}  // namespace teller::locate
