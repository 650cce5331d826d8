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

TEST(LogLoad, AllRanksReadMoreSlowlyThanAnyStorage) {
  const std::string plain =
      "INFO 05-02 13:34:20 [core.py:58] Initializing a V1 LLM engine, quantization=None, seed=0\n";
  for (const auto& text : {plain + Loads({900, 910}, 15), plain + SglangLoad(600, 15), Loads({4000, 4100}, 15)}) {
    const auto alarms = Alarms(text);
    ASSERT_EQ(alarms.size(), 1u) << text;
    EXPECT_EQ(alarms[0].fault, FaultClass::kStorageSlow);
    EXPECT_FALSE(alarms[0].culprit.rank) << "no rank differs from the others";
  }
}

TEST(LogLoad, SlowIsNotSaidOfWhatADiskBrings) {
  EXPECT_TRUE(Alarms(Loads({150, 151}, 15)).empty());  // 214 MB/s
  EXPECT_TRUE(Alarms(Loads({900, 910})).empty());      // of unknown size
  EXPECT_TRUE(Alarms(Loads({40, 41}, 0.6)).empty());   // little, soon over
  EXPECT_TRUE(Alarms(Loads({70, 71}, 0.2)).empty());   // little: what is not reading counts
  EXPECT_TRUE(Alarms(SglangLoad(150, 15)).empty());
  // 27 MB/s of what is kept; it may have been quantized on the way, and four times as much read.
  EXPECT_TRUE(Alarms(SglangLoad(600, 15)).empty());
}

}  // namespace
}  // namespace teller::locate
