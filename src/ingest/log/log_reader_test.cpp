#include "ingest/log/log_reader.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <string>

#include "ingest/log/line_splitter.hpp"

namespace teller::ingest {
namespace {

using trace::LogLevel;
using trace::LogRecord;
using trace::LogSource;

struct Read {
  trace::Store store;
  const LogRecord& operator[](size_t i) const { return store.logs.at(i); }
  const LogRecord& only() const {
    EXPECT_EQ(store.logs.size(), 1u);
    return store.logs.at(0);
  }
  double statistic(size_t i, std::string_view key) const {
    for (const auto& [name, value] : store.logs.at(i).statistics) {
      if (name == key) return value;
    }
    return -1;
  }
};

Read ReadText(std::string_view text, const base::Limits& limits = {}) {
  Read read;
  read.store.files.emplace_back();
  auto source = base::OpenMemory(text);
  EXPECT_TRUE(ReadLog(*source, trace::FileRow(0), read.store, limits).ok());
  const trace::File& file = read.store.files[0];
  EXPECT_EQ(file.records_read, file.log_records + file.repaired_away + file.dropped);
  EXPECT_EQ(file.log_records, read.store.logs.size());
  return read;
}

TEST(LogReader, PeelsNestedPrefixesAndColours) {
  const auto read = ReadText(
      "vllm-0  | \x1b[36m(EngineCore_0 pid=7)\x1b[0;0m (VllmWorker TP1 pid=9) ERROR 11-08 11:01:29 [a.py:135] gone\n");
  EXPECT_EQ(read.only().process, "VllmWorker");
  EXPECT_EQ(read[0].pid, 9);
  EXPECT_EQ(read[0].rank, 1);
  EXPECT_EQ(read[0].level, LogLevel::kError);
  EXPECT_EQ(read[0].logger, "a.py:135");
  EXPECT_EQ(read[0].message, "gone");
}

TEST(LogReader, ReadsBothVllmLayouts) {
  const auto read = ReadText(
      "(VllmWorkerProcess pid=5) INFO 01-17 03:11:25 async_llm_engine.py:134] Aborted request x.\n"
      "INFO 01-17 03:11:25 [async_llm_engine.py:134] Aborted request y.\n");
  EXPECT_EQ(read[0].source, LogSource::kVllm);
  EXPECT_EQ(read[0].message, "Aborted request x.");
  EXPECT_EQ(read[1].message, "Aborted request y.");
  EXPECT_EQ(read[0].logger, read[1].logger);
}

TEST(LogReader, ReadsStatisticsAsLists) {
  const auto read = ReadText(
      "INFO 01-01 00:00:00 [loggers.py:1] Engine 003: Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: "
      "7.0 "
      "tokens/s, Running: 2 reqs, Waiting: 98 reqs, GPU KV cache usage: 73.8%, Prefix cache hit rate: 13.4%\n"
      "INFO 01-01 00:00:00 [loggers.py:1] Engine 000: Iteration(59): 1 context requests, 94 context tokens, 3 "
      "generation "
      "requests, 3 generation tokens, iteration elapsed time: 38.47 ms, CPU KV cache usage: 11.1%\n"
      "[2026-01-01 00:00:00.123 TP1] Decode batch, #running-req: 8, #token: 65165, token usage: 0.13, cuda graph: "
      "False, gen "
      "throughput (token/s): 183.01, #queue-req: 4\n"
      "[00:00:00 TP0] Prefill batch. #new-seq: 3, #new-token: 8192, #cached-token: 32, token usage: 0.03, #queue-req: "
      "1\n"
      "0.35.412.409 I slot print_timing: id  0 | task 20 | prompt eval time =     282.80 ms /    17 tokens (   16.64 "
      "ms per "
      "token,    60.11 tokens per second)\n");
  EXPECT_DOUBLE_EQ(read.statistic(0, "engine"), 3);
  EXPECT_DOUBLE_EQ(read.statistic(0, "prompt_throughput"), 12.5);
  EXPECT_DOUBLE_EQ(read.statistic(0, "waiting"), 98);
  EXPECT_DOUBLE_EQ(read.statistic(0, "kv_usage"), 0.738);
  EXPECT_DOUBLE_EQ(read.statistic(0, "prefix_hit_rate"), 0.134);
  EXPECT_DOUBLE_EQ(read.statistic(1, "iteration"), 59);
  EXPECT_DOUBLE_EQ(read.statistic(1, "context_tokens"), 94);
  EXPECT_DOUBLE_EQ(read.statistic(1, "iteration_ms"), 38.47);
  EXPECT_DOUBLE_EQ(read.statistic(1, "kv_usage"), 0.111);
  EXPECT_EQ(read[2].rank, 1);
  EXPECT_EQ(read[2].process, "scheduler");
  EXPECT_DOUBLE_EQ(read.statistic(2, "graph"), 0);
  EXPECT_DOUBLE_EQ(read.statistic(2, "waiting"), 4);
  EXPECT_DOUBLE_EQ(read.statistic(3, "new_tokens"), 8192);
  EXPECT_DOUBLE_EQ(read.statistic(4, "prompt_eval_ms"), 282.8);
  EXPECT_DOUBLE_EQ(read.statistic(4, "prompt_eval_tokens"), 17);
}

TEST(LogReader, JoinsATracebackWhosePrefixIsRepeated) {
  const auto read = ReadText(
      "(EngineCore pid=1) ERROR 05-02 13:35:28 [core.py:1108] EngineCore failed to start.\n"
      "(EngineCore pid=1) ERROR 05-02 13:35:28 [core.py:1108] Traceback (most recent call last):\n"
      "(APIServer pid=2) INFO 05-02 13:35:28 [x.py:1] between\n"
      "(EngineCore pid=1) ERROR 05-02 13:35:28 [core.py:1108]   File \"a.py\", line 1, in f\n"
      "(EngineCore pid=1) ERROR 05-02 13:35:28 [core.py:1108] torch.AcceleratorError: CUDA error: out of memory\n"
      "(EngineCore pid=1) ERROR 05-02 13:35:28 [core.py:1108] Compile with `TORCH_USE_CUDA_DSA`.\n"
      "(EngineCore pid=1) INFO 05-02 13:35:29 [core.py:1] next\n");
  ASSERT_EQ(read.store.logs.size(), 3u);
  EXPECT_EQ(read[0].exception, "torch.AcceleratorError: CUDA error: out of memory");
  EXPECT_EQ(read[0].lines, 6u);
  EXPECT_EQ(read[1].message, "between");
  EXPECT_EQ(read[2].message, "next");
}

TEST(LogReader, JoinsBareAndChainedTracebacks) {
  const auto read = ReadText(
      "2026-11-29 20:25:36,009 [rank0] ERROR serve: inference failed\n"
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 1, in f\n"
      "KeyError: 'x'\n"
      "\n"
      "During handling of the above exception, another exception occurred:\n"
      "\n"
      "Traceback (most recent call last):\n"
      "  File \"b.py\", line 1, in g\n"
      "RuntimeError: second\n"
      "2026-11-29 20:25:36,343 [rank0] INFO serve: profiler trace written\n");
  ASSERT_EQ(read.store.logs.size(), 2u);
  EXPECT_EQ(read[0].exception, "RuntimeError: second");
  EXPECT_NE(read[0].message.find("KeyError: 'x'"), std::string::npos);
  EXPECT_EQ(read[0].rank, 0);
  EXPECT_EQ(read[0].logger, "serve");
}

TEST(LogReader, CollapsesAProgressBarAndFreesWhatIsGluedToIt) {
  const auto read = ReadText(
      "(W pid=1) \rLoading shards:   0% Completed | 0/3 [00:00<?, ?it/s]\n"
      "(W pid=1) \rLoading shards:  33% Completed | 1/3 [00:02<00:04,  2.0s/it]\r"
      "Loading shards: 100% Completed | 3/3 [00:04<00:00,  0.5it/s][2026-08-01 23:37:54] Parameter x not found\n");
  ASSERT_EQ(read.store.logs.size(), 2u);
  EXPECT_EQ(read[0].source, LogSource::kProgress);
  EXPECT_DOUBLE_EQ(read.statistic(0, "done"), 3);
  EXPECT_DOUBLE_EQ(read.statistic(0, "seconds_per_item"), 2);
  EXPECT_EQ(read[0].process, "W");
  EXPECT_EQ(read[1].message, "Parameter x not found");
}

TEST(LogReader, KnowsTheOtherGrammars) {
  const auto read = ReadText(
      "[rank0]:[E ProcessGroupNCCL.cpp:563] [Rank 0] Watchdog caught\n"
      "[E1001 16:06:04.537131842 ProcessGroupNCCL.cpp:607] [PG 0 (default_pg) Rank 2] Exception\n"
      "W0716 01:10:47.676000 567101 torch/_dynamo/x.py:984] [0/8] hit config.recompile_limit (8)\n"
      "node0:64904:64921 [1] transport/net.cc:12 NCCL WARN NET/IB : Got async event : port error\n"
      "[2026-01-02 03:04:05] node0:64904:64921 [1] a.cc:1 NCCL WARN text\n"
      "INFO:     127.0.0.1:58264 - \"GET /health HTTP/1.1\" 404 Not Found\n"
      "USDT:2026-11-29 20:25:36 7633:7634 SyncActivityProfilerHandler.cpp:46] profiler_stop\n"
      "kern  :warn  : 2025-01-21T02:21:33,498559+00:00 NVRM: Xid (PCI:0000:38:00): 13, pid=1\n"
      "6,3964,206764307,-;nvidia-nvswitch2: open\n"
      "[ 1843.308145] NVRM: text\n"
      "[Sun Feb 23 16:24:18 2025] NVRM: text\n"
      "2025-01-17T17:10:43+0000 node1 kernel: IPv6: text\n"
      "Feb 14 05:03:41 node1 kernel: IPv6: text\n"
      "WARNING:root:careful\n"
      "[2025-08-21 07:17:09,753] LMCache INFO: stored (cache.py:1050:lmcache.x)\n"
      "2025-04-14T15:51:36.389275Z  INFO text_generation_launcher: Files are present\n"
      "{\"timestamp\":\"2025-04-14T15:51:36Z\",\"level\":\"ERROR\",\"fields\":{\"message\":\"bad\"}}\n"
      "(raylet) [2025-04-02 15:02:00,117 E 135782 135790] (raylet) node_manager.cc:3069: 1 Workers killed\n"
      "[07/05/2025-10:11:12] [TRT-LLM] [RANK 3] [E] failed\n");
  ASSERT_EQ(read.store.logs.size(), 19u);
  EXPECT_EQ(read[0].source, LogSource::kTorchC10);
  EXPECT_EQ(read[1].rank, 2);
  EXPECT_EQ(read[2].source, LogSource::kGlog);
  EXPECT_EQ(read[2].pid, 567101);
  EXPECT_EQ(read[3].source, LogSource::kNccl);
  EXPECT_EQ(read[3].level, LogLevel::kWarning);
  EXPECT_EQ(read[4].source, LogSource::kNccl);
  EXPECT_DOUBLE_EQ(read.statistic(5, "http_status"), 404);
  EXPECT_EQ(read[6].source, LogSource::kKineto);
  for (size_t i = 7; i <= 12; ++i) EXPECT_EQ(read[i].source, LogSource::kKernel) << i;
  EXPECT_EQ(read[7].level, LogLevel::kWarning);
  EXPECT_EQ(read[13].message, "careful");
  EXPECT_EQ(read[14].logger, "cache.py:1050");
  EXPECT_EQ(read[15].logger, "text_generation_launcher");
  EXPECT_EQ(read[16].message, "bad");
  EXPECT_EQ(read[17].process, "raylet");
  EXPECT_EQ(read[18].rank, 3);
  EXPECT_EQ(read[18].level, LogLevel::kError);
}

TEST(LogReader, BoundsALineWithoutEndAndCountsBadBytes) {
  base::Limits limits;
  limits.max_log_line_bytes = 1000;
  const std::string text = std::string(300'000, 'x') + "\n\xff\xfe ok \xC3\n" + std::string("a\0b", 3);
  const auto read = ReadText(text, limits);
  ASSERT_EQ(read.store.logs.size(), 3u);
  EXPECT_EQ(read[0].message.size(), 1000u);
  EXPECT_EQ(read[2].message, "a b");
  EXPECT_EQ(read.store.diagnostics.Count("log.line-cut"), 1u);
  EXPECT_EQ(read.store.diagnostics.Count("log.not-utf8"), 3u);
}

TEST(LogReader, BoundsTheRecordsAndCountsTheRest) {
  base::Limits limits;
  limits.max_log_records = 3;
  std::string text;
  for (int i = 0; i < 10; ++i) text += "INFO 05-02 13:35:28 [a.py:1] x\n";
  const auto read = ReadText(text, limits);
  EXPECT_EQ(read.store.logs.size(), 3u);
  EXPECT_EQ(read.store.files[0].dropped, 7u);
  EXPECT_EQ(read.store.diagnostics.Count("log.too-many-records"), 7u);
}

TEST(LogReader, AJoinedLineBeyondTheLimitIsCounted) {
  base::Limits limits;
  limits.max_log_line_bytes = 200;
  std::string text;
  for (int i = 0; i < 4; ++i) text += "2026-01-02T03:04:05.123456789Z stderr P " + std::string(100, 'x') + "\n";
  text += "2026-01-02T03:04:05.123456789Z stderr F the end\n";
  const auto read = ReadText(text, limits);
  ASSERT_EQ(read.store.logs.size(), 1u);
  EXPECT_GE(read.store.diagnostics.Count("log.line-cut"), 1u);
}

TEST(LogReader, SameRecordsWhateverTheChunks) {
  const std::string text =
      "a\r\n(W pid=1) \rbar:  5%| | 1/2 [00:00<00:01, 1.0it/s]\r\rINFO 05-02 13:35:28 [a.py:1] x\nend";
  std::string whole;
  log::LineSplitter first(100,
                          [&](const log::Segment& s) { whole += std::to_string(s.line) + std::string(s.text) + "|"; });
  first.Feed(text);
  first.Finish();
  for (size_t cut = 1; cut < text.size(); ++cut) {
    std::string parts;
    log::LineSplitter splitter(
        100, [&](const log::Segment& s) { parts += std::to_string(s.line) + std::string(s.text) + "|"; });
    splitter.Feed(std::string_view(text).substr(0, cut));
    splitter.Feed(std::string_view(text).substr(cut));
    splitter.Finish();
    EXPECT_EQ(parts, whole) << cut;
  }
}

TEST(LogReader, ReadsEveryRealLogAndLosesNothing) {
  const std::filesystem::path root = "../shared/data";
  if (!std::filesystem::exists(root)) {
    GTEST_SKIP() << "the real logs (../shared/data) are not here";
  }
  size_t files = 0;
  size_t unknown = 0;
  size_t records = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || (name.find(".log") == std::string::npos)) continue;
    auto source = base::OpenFile(entry.path().string());
    ASSERT_TRUE(source.has_value());
    trace::Store store;
    store.files.emplace_back();
    ASSERT_TRUE(ReadLog(**source, trace::FileRow(0), store, {}).ok());
    EXPECT_EQ(store.files[0].records_read, store.files[0].log_records + store.files[0].repaired_away) << entry.path();
    for (const auto& record : store.logs) unknown += record.source == LogSource::kUnknown ? 1 : 0;
    records += store.logs.size();
    ++files;
  }
  EXPECT_GT(files, 40u);
  EXPECT_LT(static_cast<double>(unknown), 0.05 * static_cast<double>(records));
  std::cout << files << " logs, " << records << " records, " << unknown << " in no known grammar\n";
}

}  // namespace
}  // namespace teller::ingest
