#include "ingest/host_counters/host_counters.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace teller::ingest {
namespace {

using trace::CounterKind;

trace::Store ReadText(std::string_view text, bool usable = true) {
  trace::Store store;
  store.files.emplace_back();
  store.files[0].path = "host.jsonl";
  auto source = base::OpenMemory(text);
  EXPECT_EQ(ReadHostCounters(*source, trace::FileRow(0), store, {}).ok(), usable);
  const auto& file = store.files[0];
  EXPECT_EQ(file.records_read, file.counters + file.metadata + file.dropped);
  EXPECT_EQ(file.counters, store.counters.size());
  return store;
}

const trace::CounterSeries* Find(const trace::Store& store, const std::string& name, const std::string& process) {
  for (const auto& series : store.counter_series) {
    if (series.name == name && series.process_name == process) return &series;
  }
  return nullptr;
}

TEST(HostCounters, OneLevelOfNestingIsOneCounterAProcess) {
  const auto store = ReadText(
      R"({"t_ns": 1795986611498774849, "cpu_s": {"APIServer": 17.48, "EngineCore": 17.3}, "busy_s": 10.5, "procs_running": 2})"
      "\n"
      R"({"t_ns": 1795986611999895998, "cpu_s": {"APIServer": 17.49, "EngineCore": 17.4}, "busy_s": 10.9, "procs_running": 1})"
      "\n");
  EXPECT_EQ(store.counter_series.size(), 4u);
  EXPECT_EQ(store.counters.size(), 8u);
  const auto* engine = Find(store, "cpu_s", "EngineCore");
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->kind, CounterKind::kCumulative);
  ASSERT_NE(Find(store, "procs_running", ""), nullptr);
  EXPECT_EQ(Find(store, "procs_running", "")->kind, CounterKind::kGauge);
  EXPECT_EQ(store.counters[5].value, 17.4);
  EXPECT_EQ(store.counters[5].at, 1795986611999895998);
  EXPECT_EQ(store.counters[5].scrape, 1u);
}

TEST(HostCounters, OneProcessALine) {
  const auto store = ReadText(
      R"({"t_ns": 1795985212178265271, "process": "scheduler", "state": "R", "run_ns": 20, "wait_ns": 2, "pid": 12})"
      "\n"
      R"({"t_ns": 1795985212180158211, "process": "detokenizer", "state": "S", "run_ns": 24, "wait_ns": 6, "pid": 13})"
      "\n"
      R"({"t_ns": 1795985212381896988, "process": "scheduler", "state": "T", "run_ns": 29, "wait_ns": 3, "pid": 12})"
      "\n");
  EXPECT_EQ(store.counter_series.size(), 6u);
  EXPECT_EQ(store.files[0].metadata, 6u);
  const auto* state = Find(store, "state", "scheduler");
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(state->kind, CounterKind::kGauge);
  EXPECT_EQ(store.counters[6].value, 'T');
  EXPECT_EQ(Find(store, "run_ns", "detokenizer")->kind, CounterKind::kCumulative);
}

TEST(HostCounters, UnknownNamesAreJudgedByWhetherTheyFall) {
  const auto store = ReadText(R"({"ts": 1795986611.5, "pages": 1, "heat": 3, "flat": 7, "ctxt": 5})"
                              "\n"
                              R"({"ts": 1795986612.5, "pages": 2, "heat": 2, "flat": 7, "ctxt": 4})"
                              "\n"
                              R"({"ts": 1795986613.5, "pages": 2, "heat": 4, "flat": 7, "ctxt": 6})"
                              "\n");
  EXPECT_EQ(Find(store, "pages", "")->kind, CounterKind::kCumulative);
  EXPECT_EQ(Find(store, "heat", "")->kind, CounterKind::kGauge);
  EXPECT_EQ(Find(store, "flat", "")->kind, CounterKind::kGauge);
  EXPECT_EQ(Find(store, "ctxt", "")->kind, CounterKind::kCumulative);  // it fell: a restart
  EXPECT_EQ(store.counters[0].at, 1795986611500000000);
}

TEST(HostCounters, BadLinesAndFieldsAreCounted) {
  const auto store =
      ReadText(R"({"t_ns": 1795986611498774849, "a": 1, "b": [1, 2], "c": null, "d": {"x": "y", "z": 2}})"
               "\n{\"t_ns\": 5, \"a\": 1}\nnot json\n{\"a\": 1}\n[1]\n{\"t_ns\": 17959866124987748");
  EXPECT_EQ(store.counters.size(), 2u);
  EXPECT_EQ(store.diagnostics.Count("host.bad-line"), 5u);
  EXPECT_EQ(store.diagnostics.Count("host.bad-field"), 2u);
  EXPECT_EQ(store.files[0].dropped, 7u);
}

TEST(HostCounters, RefusesOtherJson) {
  ReadText("", false);
  ReadText("{\"a\": 1}\n", false);
  EXPECT_TRUE(LooksLikeHostCounters(R"({"t_ns": 1795986611498774849, "run_ns": 1, "state": "S"})"));
  EXPECT_TRUE(LooksLikeHostCounters(R"({"t_ns": 1795986611498774849, "cpu_s": {"a": 1}})"));
  for (const char* other :
       {R"({"id": "r0", "send_ns": 1795986611498774849, "n": 3})", R"({"t_ns": 1795986611498774849, "text": "hello"})",
        R"({"t_ns": 1795986611498774849, "token_ns": [1, 2]})", R"({"t_ns": 12, "a": 1})",
        R"({"t_ns": 1795986611498774849, "state": "S"})", R"({"t_ns": 1795986611498774849, "a": {"b": {"c": 1}}})",
        "[1]"}) {
    EXPECT_FALSE(LooksLikeHostCounters(other)) << other;
  }
}

/// Every number of the lab's files, against nlohmann's reading of the same lines.
TEST(HostCounters, ReadsTheRealFiles) {
  const std::filesystem::path root = "../shared/data/lab";
  if (!std::filesystem::exists(root)) {
    GTEST_SKIP() << "the real host counters (../shared/data) are not here";
  }
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const auto name = entry.path().filename();
    if (name != "host.jsonl" && name != "host_cpu.jsonl") continue;
    ++files;
    std::ifstream in(entry.path());
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    EXPECT_TRUE(LooksLikeHostCounters(text.substr(0, text.find('\n')))) << entry.path();
    const auto store = ReadText(text);
    EXPECT_EQ(store.files[0].dropped, 0u) << entry.path();
    size_t next = 0;
    std::istringstream lines(text);
    std::string line;
    while (std::getline(lines, line)) {
      // As a map with the order of the file: samples come in that order.
      const auto object = nlohmann::ordered_json::parse(line);
      const std::string process = object.value("process", "");
      const auto expect = [&](const std::string& series_name, const std::string& owner, double value) {
        ASSERT_LT(next, store.counters.size());
        const auto& sample = store.counters[next++];
        const auto& series = store.counter_series[sample.series.value()];
        EXPECT_EQ(series.name, series_name);
        EXPECT_EQ(series.process_name, owner);
        EXPECT_EQ(sample.value, value);
        EXPECT_EQ(sample.at, object["t_ns"].get<int64_t>());
      };
      for (const auto& [key, value] : object.items()) {
        if (key == "t_ns" || key == "process" || key == "pid") continue;
        if (value.is_object()) {
          for (const auto& [owner, number] : value.items()) expect(key, owner, number.get<double>());
        } else if (value.is_string()) {
          expect(key, process, value.get<std::string>()[0]);
        } else {
          expect(key, process, value.get<double>());
        }
      }
    }
    EXPECT_EQ(next, store.counters.size()) << entry.path();
  }
  EXPECT_GE(files, 20u);
}

}  // namespace
}  // namespace teller::ingest
