// Real logs and dumps: who is named, and that clean ones give no alarm.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "ingest/flight_recorder/flight_recorder.hpp"
#include "ingest/log/log_reader.hpp"
#include "locate/log_cause.hpp"

namespace teller::locate {
namespace {

namespace fs = std::filesystem;
using trace::FaultClass;
using trace::Finding;

const fs::path kData = "../shared/data";

#define SKIP_WITHOUT_DATA()                                        \
  if (!fs::exists(kData)) {                                        \
    GTEST_SKIP() << "the real data (../shared/data) are not here"; \
  }

trace::Store ReadLogs(const std::vector<fs::path>& paths) {
  trace::Store store;
  for (const auto& path : paths) {
    auto source = base::OpenFile(path.string());
    EXPECT_TRUE(source.has_value()) << path;
    if (!source) continue;
    store.files.emplace_back();
    store.files.back().path = path.filename().string();
    const trace::FileRow file(static_cast<uint32_t>(store.files.size() - 1));
    if (path.extension() == ".json") {
      EXPECT_TRUE(ingest::ReadFlightRecorder(**source, file, store, {}).ok());
    } else {
      EXPECT_TRUE(ingest::ReadLog(**source, file, store, {}).ok());
    }
  }
  ingest::ResolveLogTimes(store);
  return store;
}

std::vector<Finding> Alarms(const std::vector<fs::path>& paths) {
  const auto store = ReadLogs(paths);
  std::vector<Finding> out;
  for (const auto& causes : {FindLogCauses(store), FindCommRecordCauses(store)}) {
    for (const auto& f : causes.findings) {
      if (f.false_alarm_probability < 0.01) out.push_back(f);
    }
  }
  return out;
}

std::vector<fs::path> FilesIn(const fs::path& folder, const std::string& extension) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == extension) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(LogReal, FirstCausesOfTheFaultyLogs) {
  SKIP_WITHOUT_DATA();
  const auto oom = Alarms({kData / "logs/vllm_oom_traceback/vllm_error.log"});
  ASSERT_EQ(oom.size(), 1u);
  EXPECT_EQ(oom[0].fault, FaultClass::kGpuMemOom);
  EXPECT_EQ(oom[0].culprit.process, "EngineCore");
  EXPECT_EQ(oom[0].evidence[0].ref, "line:40");
  const auto kv = Alarms({kData / "logs/vllm_sglang_dgx_spark/vllm_kv_cache_too_small_start_failure.log"});
  ASSERT_EQ(kv.size(), 1u);
  EXPECT_EQ(kv[0].fault, FaultClass::kGpuMemOom);
  EXPECT_EQ(kv[0].culprit.process, "EngineCore");
  const auto xid119 = Alarms({kData / "logs/kernel_xid_gpud/xid119_gsp_timeout_ctime.log"});
  ASSERT_EQ(xid119.size(), 1u);
  EXPECT_EQ(xid119[0].fault, FaultClass::kGpuHwFault);
  const auto xid13 = Alarms({kData / "logs/kernel_xid_gpud/xid13_dmesg_decode_iso.log"});
  ASSERT_EQ(xid13.size(), 1u);
  EXPECT_EQ(xid13[0].fault, FaultClass::kGpuAppFault);
  const auto both = Alarms({kData / "logs/kernel_xid_gpud/xid13_plus_oom_killer_dmesg.log"});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].fault, FaultClass::kGpuAppFault);
  EXPECT_EQ(both[1].fault, FaultClass::kProcDeath);
}

TEST(LogReal, CleanLogsGiveNoAlarm) {
  SKIP_WITHOUT_DATA();
  const std::set<std::string> faulty = {"vllm_error.log", "vllm_kv_cache_too_small_start_failure.log",
                                        "xid119_gsp_timeout_ctime.log", "xid13_dmesg_decode_iso.log",
                                        "xid13_plus_oom_killer_dmesg.log"};
  size_t clean = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kData / "logs")) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.find(".log") == std::string::npos || faulty.count(name) > 0) continue;
    for (const auto& f : Alarms({entry.path()})) ADD_FAILURE() << entry.path() << ": " << f.explanation;
    ++clean;
  }
  EXPECT_GE(clean, 20u);
}

TEST(LogReal, LabelledRunsByTheirLogsAlone) {
  SKIP_WITHOUT_DATA();
  struct Expected {
    FaultClass fault;
    std::string process;
    std::optional<int> rank;
  };
  const std::map<std::string, Expected> faults = {
      {"vllm/d08_worker_exception", {FaultClass::kProcDeath, "Worker", 0}},
      {"sglang/kv_pressure_1", {FaultClass::kKvPressure, "scheduler", 0}},
      {"llamacpp/context_overflow_1", {FaultClass::kClientError, "client", std::nullopt}},
      {"fsdp/rank_death_tp_w2", {FaultClass::kProcDeath, "rank1", 1}},
  };
  size_t runs = 0;
  for (const char* stack : {"vllm", "sglang", "llamacpp", "fsdp"}) {
    for (const auto& entry : fs::directory_iterator(kData / "lab" / stack)) {
      if (!entry.is_directory()) continue;
      const fs::path logs = fs::exists(entry.path() / "logs") ? entry.path() / "logs" : entry.path();
      const std::string run = std::string(stack) + "/" + entry.path().filename().string();
      const auto alarms = Alarms(FilesIn(logs, ".log"));
      ++runs;
      const auto it = faults.find(run);
      if (it == faults.end()) {
        for (const auto& f : alarms) ADD_FAILURE() << run << ": " << f.explanation;
        continue;
      }
      ASSERT_EQ(alarms.size(), 1u) << run;
      EXPECT_EQ(alarms[0].fault, it->second.fault) << run;
      EXPECT_EQ(alarms[0].culprit.process, it->second.process) << run;
      EXPECT_EQ(alarms[0].culprit.rank, it->second.rank) << run;
    }
  }
  EXPECT_GE(runs, 30u);
}

TEST(LogReal, FlightRecorderNamesTheInjectedRanks) {
  SKIP_WITHOUT_DATA();
  for (const char* name : {"gpu_error_1st", "lock_gil_1st"}) {
    const fs::path folder = kData / "logs/nccl_flight_recorder" / name;
    // "Fault ranks: [12, 14]"
    auto truth = base::OpenFile((folder / "fault_injection.log").string());
    ASSERT_TRUE(truth.has_value());
    std::string text(200, '\0');
    text.resize(*(*truth)->Read(text.data(), text.size()));
    std::set<int> injected;
    const std::string list = text.substr(text.find('[') + 1, text.find(']') - text.find('[') - 1);
    injected.insert(std::stoi(list));
    injected.insert(std::stoi(list.substr(list.find(',') + 1)));
    std::set<int> named;
    for (const auto& f : Alarms(FilesIn(folder, ".json"))) named.insert(*f.culprit.rank);
    EXPECT_EQ(named, injected) << name;
  }
}

}  // namespace
}  // namespace teller::locate
