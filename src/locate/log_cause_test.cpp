#include "locate/log_cause.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <string>

#include "ingest/log/log_reader.hpp"
#include "locate/log_facts.hpp"

namespace teller::locate {
namespace {

using trace::FaultClass;
using trace::Finding;

constexpr double kAlarm = 0.01;

/// The causes in some logs, one file each.
/// `also`: adds what is known beside the logs, whose times are known then.
LogCauses Causes(std::initializer_list<std::string_view> logs, const std::function<void(trace::Store&)>& also = {}) {
  trace::Store store;
  for (const auto text : logs) {
    store.files.emplace_back();
    auto source = base::OpenMemory(text);
    EXPECT_TRUE(
        ingest::ReadLog(*source, trace::FileRow(static_cast<uint32_t>(store.files.size() - 1)), store, {}).ok());
  }
  ingest::ResolveLogTimes(store);
  if (also) also(store);
  LogCauses causes = FindLogCauses(store);
  for (const Finding& f : causes.findings) {
    EXPECT_FALSE(f.explanation.empty());
    EXPECT_FALSE(f.evidence.empty());
    for (size_t i = 0; i < f.evidence.size(); ++i) EXPECT_EQ(f.evidence[i].id, "E" + std::to_string(i + 1));
  }
  return causes;
}

std::vector<Finding> Alarms(const LogCauses& causes) {
  std::vector<Finding> out;
  for (const auto& f : causes.findings) {
    if (f.false_alarm_probability < kAlarm) out.push_back(f);
  }
  return out;
}

TEST(LogCause, BlamesTheFirstTracebackNotTheMessengers) {
  const auto causes = Causes(
      {"(Worker_TP1 pid=9) ERROR 11-29 21:14:01 [multiproc_executor.py:1063] WorkerProc hit an exception.\n"
       "(Worker_TP1 pid=9) ERROR 11-29 21:14:01 [multiproc_executor.py:1063] Traceback (most recent call last):\n"
       "(Worker_TP1 pid=9) ERROR 11-29 21:14:01 [multiproc_executor.py:1063]   File \"a.py\", line 1, in f\n"
       "(Worker_TP1 pid=9) ERROR 11-29 21:14:01 [multiproc_executor.py:1063] RuntimeError: could not create a "
       "primitive\n"
       "(EngineCore pid=8) ERROR 11-29 21:14:01 [core.py:1512] EngineCore encountered a fatal error.\n"
       "(EngineCore pid=8) ERROR 11-29 21:14:01 [core.py:1512] Traceback (most recent call last):\n"
       "(EngineCore pid=8) ERROR 11-29 21:14:01 [core.py:1512] RuntimeError: Worker failed with error 'could not "
       "create a primitive'\n"
       "(APIServer pid=7) ERROR 11-29 21:14:01 [async_llm.py:9] AsyncLLM output_handler failed.\n"
       "(APIServer pid=7) INFO 11-29 21:14:02 [core_client.py:770] [shutdown] MPClient: start timeout=0s\n"});
  const auto alarms = Alarms(causes);
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0].fault, FaultClass::kProcDeath);
  EXPECT_EQ(alarms[0].culprit.process, "Worker_TP1");
  EXPECT_EQ(alarms[0].culprit.rank, 1);
  EXPECT_EQ(alarms[0].culprit.log_record, "RuntimeError: could not create a primitive");
  EXPECT_EQ(alarms[0].victims.size(), 2u);
}

TEST(LogCause, NamesTheProcessThatDiedWithoutAWord) {
  const auto vllm = Alarms(Causes(
      {"(Worker_TP1 pid=9) INFO 11-29 21:13:01 [parallel_state.py:1] world_size=2 rank=1 local_rank=1 backend=gloo\n"
       "(Worker_TP0 pid=6) INFO 11-29 21:13:01 [parallel_state.py:1] world_size=2 rank=0 local_rank=0 backend=gloo\n"
       "(EngineCore pid=8) ERROR 11-29 21:14:01 [multiproc_executor.py:135] Worker proc VllmWorker-1 died "
       "unexpectedly, shutting down executor.\n"
       "(EngineCore pid=8) ERROR 11-29 21:14:01 [core.py:1512] EngineCore encountered a fatal error.\n"
       "(EngineCore pid=8) ERROR 11-29 21:14:01 [core.py:1512] Traceback (most recent call last):\n"
       "(EngineCore pid=8) ERROR 11-29 21:14:01 [core.py:1512] RuntimeError: cancelled\n"}));
  ASSERT_EQ(vllm.size(), 1u);
  EXPECT_EQ(vllm[0].culprit.process, "Worker_TP1");
  EXPECT_EQ(vllm[0].culprit.rank, 1);

  const auto sglang = Alarms(Causes(
      {"[2026-11-29 20:46:50.805] Prefill batch, #new-seq: 1, #new-token: 20, #running-req: 0, #queue-req: 0\n"
       "[2026-11-29 20:46:59] Subprocess scheduler_0 (pid=12475) crashed with exit code -9. Triggering SIGQUIT for "
       "cleanup...\n"
       "[2026-11-29 20:46:59] SIGQUIT received. signum=None, frame=None. It usually means one child failed.\n"}));
  ASSERT_EQ(sglang.size(), 1u);
  EXPECT_EQ(sglang[0].culprit.process, "scheduler");
  EXPECT_EQ(sglang[0].culprit.rank, 0);
}

TEST(LogCause, AnOrderlyShutdownIsNoCrash) {
  const auto causes = Causes(
      {"(EngineCore pid=8) INFO 08-01 21:34:51 [core.py:1214] [shutdown] EngineCore: trigger received signal=SIGTERM\n"
       "(APIServer pid=7) ERROR 08-01 21:34:51 [async_llm.py:704] AsyncLLM output_handler failed.\n"
       "(APIServer pid=7) ERROR 08-01 21:34:51 [async_llm.py:704] Traceback (most recent call last):\n"
       "(APIServer pid=7) ERROR 08-01 21:34:51 [async_llm.py:704] vllm.v1.engine.exceptions.EngineDeadError: "
       "EngineCore encountered an issue.\n"});
  EXPECT_TRUE(causes.findings.empty());
  ASSERT_EQ(causes.notes.size(), 1u);
  EXPECT_NE(causes.notes[0].text.find("Orderly shutdown"), std::string::npos);
}

TEST(LogCause, ATracebackWithoutConsequencesIsANote) {
  const auto causes =
      Causes({"[2026-11-29 20:27:21.858] post-warmup freeze_gc failed\n"
              "Traceback (most recent call last):\n"
              "  File \"a.py\", line 1, in f\n"
              "ConnectionRefusedError: [Errno 111] Connection refused\n"
              "[2026-11-29 20:27:21.867] The server is fired up and ready to roll!\n"
              "[2026-11-29 20:27:22.272] Prefill batch, #new-seq: 1, #new-token: 20\n"
              "[2026-11-29 20:27:22.467] Decode batch, #running-req: 1, #token: 24\n"
              "[2026-11-29 20:27:22.868] Prefill batch, #new-seq: 1, #new-token: 50\n"});
  EXPECT_TRUE(causes.findings.empty());
  EXPECT_EQ(causes.notes.size(), 1u);
}

TEST(LogCause, OutOfMemoryBeatsWhatItBringsDown) {
  const auto alarms = Alarms(Causes(
      {"(EngineCore pid=4) ERROR 05-02 13:35:28 [core.py:1108] EngineCore failed to start.\n"
       "(EngineCore pid=4) ERROR 05-02 13:35:28 [core.py:1108] Traceback (most recent call last):\n"
       "(EngineCore pid=4) ERROR 05-02 13:35:28 [core.py:1108]   raise RuntimeError(\"no\")\n"
       "(EngineCore pid=4) ERROR 05-02 13:35:28 [core.py:1108] torch.AcceleratorError: CUDA error: out of memory\n"
       "Traceback (most recent call last):\n"
       "  File \"generate.py\", line 93, in <module>\n"
       "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"}));
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0].fault, FaultClass::kGpuMemOom);
  EXPECT_EQ(alarms[0].culprit.process, "EngineCore");
}

TEST(LogCause, KernelLinesExplainTheEnginesError) {
  const auto alarms = Alarms(Causes(
      {"(EngineCore pid=4) ERROR 05-02 13:35:28 [core.py:1108] EngineCore encountered a fatal error.\n"
       "(EngineCore pid=4) ERROR 05-02 13:35:28 [core.py:1108] Traceback (most recent call last):\n"
       "(EngineCore pid=4) ERROR 05-02 13:35:28 [core.py:1108] RuntimeError: CUDA error: unspecified launch failure\n",
       "[Sat May  2 13:35:29 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=4, name=python, GPU has fallen off the bus.\n"
       "[Sat May  2 13:35:30 2026] NVRM: Xid (PCI:0000:3b:00): 45, pid=4, name=python, Ch 00000008\n"}));
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0].fault, FaultClass::kGpuHwFault);
  EXPECT_NE(alarms[0].explanation.find("0000:3b:00"), std::string::npos);
}

TEST(LogCause, AXidThatOnlyFollowsIsNoCause) {
  EXPECT_TRUE(
      Alarms(Causes({"[ 12.345678] NVRM: Xid (PCI:0000:3b:00): 45, pid=4, name=python, Ch 00000008\n"})).empty());
  EXPECT_TRUE(
      Alarms(Causes({"[ 12.345678] NVRM: Xid (PCI:0000:3b:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 00\n"})).empty());
}

std::string RankLog(int rank, std::string_view tail) {
  const std::string tag = " [rank" + std::to_string(rank) + "] ";
  return "2026-11-29 20:25:33,798" + tag + "INFO serve: starting tp, world_size=4, torch 2.15.0\n" +
         "2026-11-29 20:25:35,908" + tag + "INFO serve: request 1 decode step 1: 20.1 ms\n" + std::string(tail);
}

TEST(LogCause, TheRankThatFellSilentIsTheDeadOne) {
  const auto lost = [](int rank, int ms) {
    const std::string tag = " [rank" + std::to_string(rank) + "] ";
    return "2026-11-29 20:25:36,0" + std::to_string(ms) + tag + "ERROR serve: inference failed at step 11\n" +
           "Traceback (most recent call last):\n  File \"serve.py\", line 94, in run\n" +
           "RuntimeError: [gloo/transport/tcp/pair.cc:545] Read error [10.87.0.11]:48260: Connection reset by peer.\n" +
           "2026-11-29 20:25:36,343" + tag + "INFO serve: profiler trace written\n";
  };
  const std::string r0 = RankLog(0, lost(0, 10));
  const std::string r1 = RankLog(1, lost(1, 12));
  const std::string r2 = RankLog(2, "");
  const std::string r3 = RankLog(3, lost(3, 11));
  for (const auto& order :
       {std::vector<std::string_view>{r0, r1, r2, r3}, std::vector<std::string_view>{r3, r2, r1, r0}}) {
    const auto alarms = Alarms(Causes({order[0], order[1], order[2], order[3]}));
    ASSERT_EQ(alarms.size(), 1u);
    EXPECT_EQ(alarms[0].fault, FaultClass::kProcDeath);
    EXPECT_EQ(alarms[0].culprit.rank, 2);
  }
  const auto nothing_left = Alarms(Causes({r0, r1, r3}));
  ASSERT_EQ(nothing_left.size(), 1u);
  EXPECT_EQ(nothing_left[0].culprit.rank, 2);
}

TEST(LogCause, ARankThatLeftInOrderTooEarlyWentAnotherWay) {
  const auto alarms =
      Alarms(Causes({RankLog(0,
                             "2026-11-29 20:25:36,010 [rank0] ERROR serve: inference failed at step 11\n"
                             "Traceback (most recent call last):\n"
                             "RuntimeError: [gloo/transport/tcp/pair.cc:545] Connection closed by peer [10.0.0.1]:4\n"),
                     "2026-11-29 20:25:33,798 [rank1] INFO serve: starting tp, world_size=2\n"
                     "2026-11-29 20:25:36,000 [rank1] INFO serve: shut down\n"}));
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_TRUE(alarms[0].culprit.rank == 1 || !alarms[0].culprit.rank);
}

TEST(LogCause, AWorkerThatOnlyItsPeerMissesIsNamedByItsRank) {
  const auto alarms = Alarms(Causes(
      {"(Worker_TP0 pid=6) INFO 11-29 21:13:01 [parallel_state.py:1] world_size=2 rank=0 local_rank=0 backend=gloo\n"
       "(Worker_TP1 pid=9) INFO 11-29 21:13:01 [parallel_state.py:1] world_size=2 rank=1 local_rank=1 backend=gloo\n"
       "(Worker_TP0 pid=6) ERROR 11-29 21:14:01 [multiproc_executor.py:1063] WorkerProc hit an exception.\n"
       "(Worker_TP0 pid=6) ERROR 11-29 21:14:01 [multiproc_executor.py:1063] Traceback (most recent call last):\n"
       "(Worker_TP0 pid=6) ERROR 11-29 21:14:01 [multiproc_executor.py:1063] RuntimeError: "
       "[gloo/transport/tcp/pair.cc:545] Connection closed by peer [127.0.0.1]:4\n"
       "(EngineCore pid=8) ERROR 11-29 21:14:01 [core.py:1512] EngineCore encountered a fatal error.\n"}));
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0].culprit.process, "Worker_TP1");
  EXPECT_EQ(alarms[0].culprit.rank, 1);
}

TEST(LogCause, WatchdogsTellWhoIsBehind) {
  const auto line = [](int rank, int seq, int done) {
    return "[rank" + std::to_string(rank) + "]:[E1001 16:06:04.53 ProcessGroupNCCL.cpp:607] [Rank " +
           std::to_string(rank) +
           "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" + std::to_string(seq) +
           ", OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600086 milliseconds before timing "
           "out.\n[rank" +
           std::to_string(rank) + "]:[E1001 16:06:04.53 ProcessGroupNCCL.cpp:630] [PG 0 Rank " + std::to_string(rank) +
           "] Timeout at NCCL work: " + std::to_string(seq) +
           ", last enqueued NCCL work: 6464, last completed NCCL work: " + std::to_string(done) + ".\n";
  };
  const auto behind = Alarms(Causes({line(0, 5730, 5729) + line(3, 5729, 5728) + line(1, 5730, 5729)}));
  ASSERT_EQ(behind.size(), 1u);
  EXPECT_EQ(behind[0].fault, FaultClass::kCollDivergence);
  EXPECT_EQ(behind[0].culprit.rank, 3);

  const auto first = Alarms(Causes({line(0, 1, 0) + line(1, 1, 0)}));
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].fault, FaultClass::kCollFirstOpHang);
  EXPECT_FALSE(first[0].culprit.rank.has_value());
}

TEST(LogCause, KvPressureNeedsMoreThanOneRetraction) {
  const std::string line =
      "[2026-11-29 20:47:0X.705] KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: "
      "204\n";
  std::string many;
  for (char c = '1'; c <= '5'; ++c) {
    std::string copy = line;
    copy[19] = c;
    many += copy;
  }
  const auto alarms = Alarms(Causes({many}));
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0].fault, FaultClass::kKvPressure);
  EXPECT_EQ(alarms[0].culprit.process, "scheduler");
  EXPECT_EQ(alarms[0].culprit.rank, 0);
  EXPECT_TRUE(Alarms(Causes({std::string_view(many).substr(0, many.size() / 5)})).empty());
}

/// One iteration in a full cache.
std::string Iteration(int number, int running, int prefills = 1) {
  return "(APIServer pid=1) INFO 11-29 21:13:55 [loggers.py:199] Engine 000: Iteration(" + std::to_string(number) +
         "): " + std::to_string(prefills) + " context requests, 40 context tokens, " + std::to_string(running) +
         " generation requests, 3 generation tokens, iteration elapsed time: 6.85 ms, CPU KV cache usage: 100.0%\n";
}

TEST(LogCause, MorePrefillsThanRequestsInAFullCacheArePreemptions) {
  const auto run = [](int prefills) {
    std::string text;
    for (int i = 0; i < 20; ++i) {
      text += Iteration(i, 3);
      for (int k = 0; i == 10 && k < prefills; ++k) text += Iteration(i, 3);
      text += "INFO:     127.0.0.1:1 - \"POST /v1/completions HTTP/1.1\" 200 OK\n";
    }
    return Alarms(Causes({text + Iteration(20, 1, 0)}));
  };
  EXPECT_TRUE(run(0).empty());
  const auto alarms = run(4);
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0].fault, FaultClass::kKvPressure);
  EXPECT_EQ(alarms[0].culprit.process, "EngineCore");
}

TEST(LogCause, NoPreemptionIsInferredThatTheEngineDidNotCount) {
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += Iteration(i, 3);
    for (int k = 0; i == 10 && k < 4; ++k) text += Iteration(i, 3);
    text += "INFO:     127.0.0.1:1 - \"POST /v1/completions HTTP/1.1\" 200 OK\n";
  }
  text += Iteration(20, 1, 0);
  const auto alarms = [&](const std::vector<double>& counts, trace::Nanos begin) {
    return Alarms(Causes({text}, [&](trace::Store& store) {
      const trace::CounterRow row(0);
      store.counter_series.emplace_back();
      store.counter_series.back().file = trace::FileRow(0);
      store.counter_series.back().name = "vllm:num_preemptions_total";
      const trace::Nanos at = store.logs.front().at;
      for (size_t i = 0; i < counts.size(); ++i)
        store.counters.push_back({at + begin + static_cast<trace::Nanos>(i) * base::kSecond, row, 0, counts[i]});
    }));
  };
  EXPECT_TRUE(alarms({2, 2, 2}, -base::kSecond).empty());
  EXPECT_EQ(alarms({0, 2, 2}, -base::kSecond).size(), 1u);
  EXPECT_EQ(alarms({2, 2, 2}, 10 * base::kSecond).size(), 1u) << "scraped later, it tells nothing";
}

TEST(LogCause, WithoutAccessLinesThatCoverTheIterationsPrefillsProveNothing) {
  const std::string served = "INFO:     127.0.0.1:1 - \"POST /v1/completions HTTP/1.1\" 200 OK\n";
  const auto quiet = [](const std::string& text) { return Alarms(Causes({text})).empty(); };
  std::string bare;
  for (int i = 0; i < 20; ++i) bare += Iteration(i, 3);
  std::string full;
  for (int i = 0; i < 20; ++i) full += Iteration(i, 3) + served;
  EXPECT_TRUE(quiet(bare)) << "access log off";
  EXPECT_TRUE(quiet(bare + full)) << "access log begins in mid-run";
  EXPECT_TRUE(quiet(full + bare)) << "access log ends in mid-run";
  EXPECT_TRUE(quiet(full + Iteration(20, 3) + Iteration(21, 3) + Iteration(22, 3))) << "requests still unanswered";
  std::string pending = full;
  for (int i = 20; i < 28; ++i) pending += Iteration(i, i - 20);
  EXPECT_TRUE(quiet(pending + served + Iteration(28, 7, 0))) << "one of eight answered, seven still run";
  std::string others;
  for (int i = 0; i < 20; ++i) {
    others += Iteration(i, 3) + "INFO:     127.0.0.1:1 - \"POST /start_profile HTTP/1.1\" 200 OK\n" +
              "INFO:     127.0.0.1:1 - \"POST /v1/completions HTTP/1.1\" 400 Bad Request\n";
  }
  for (const auto& f : Alarms(Causes({others}))) EXPECT_NE(f.fault, FaultClass::kKvPressure);
  std::string batches;
  for (int i = 0; i < 40; ++i) batches += Iteration(i, 8) + (i % 4 == 3 ? served : "");
  EXPECT_TRUE(quiet(batches)) << "four prompts in each request";
  std::string again;
  for (int i = 0; i < 20; ++i) again += Iteration(i, 3) + (i % 5 == 4 ? Iteration(i, 3) : "") + served;
  again += Iteration(20, 1, 0);
  EXPECT_FALSE(quiet(again)) << "every fifth request was prefilled twice";
}

TEST(LogCause, ALongRunOfFullStatisticsLinesIsReadInLinearTime) {
  std::string text;
  for (int i = 0; i < 20000; ++i) {
    text +=
        "INFO 11-29 21:13:55 [loggers.py:1] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation "
        "throughput: 1.0 tokens/s, Running: 3 reqs, Waiting: 2 reqs, GPU KV cache usage: 99.0%\n";
  }
  const auto alarms = Alarms(Causes({text}));
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_NE(alarms[0].explanation.find("20000 statistics lines"), std::string::npos);
}

TEST(LogCause, TwoDevicesAreTwoFindings) {
  const auto line = [](int second, std::string_view device) {
    return "[Sat May  2 13:35:0" + std::to_string(second) + " 2026] NVRM: Xid (PCI:" + std::string(device) +
           "): 79, GPU has fallen off the bus.\n";
  };
  const std::string text = line(1, "0000:3b:00") + line(2, "0000:5e:00") + line(3, "0000:3b:00");
  const auto alarms = Alarms(Causes({text}));
  ASSERT_EQ(alarms.size(), 2u);
  EXPECT_NE(alarms[0].evidence[0].text.find("0000:3b:00"), std::string::npos);
  EXPECT_NE(alarms[1].evidence[0].text.find("0000:5e:00"), std::string::npos);
  EXPECT_NE(alarms[1].explanation.find("0000:5e:00"), std::string::npos);
}

TEST(LogCause, TheSameDeviceAgainIsOneFindingWithBothLines) {
  const auto line = [](int hour) {
    return "[Sat May  2 1" + std::to_string(hour) +
           ":35:01 2026] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n";
  };
  const auto alarms = Alarms(Causes({line(3) + line(5)}));
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0].evidence.size(), 2u);
}

TEST(LogCause, EvidenceWithoutRoomHasNoMark) {
  trace::Store store;
  store.files.emplace_back();
  store.logs.resize(20);
  for (auto& record : store.logs) record.file = trace::FileRow(0);
  Finding finding;
  for (size_t row = 0; row < store.logs.size(); ++row) {
    const std::string mark = AddEvidence(finding, store, row);
    if (mark.empty()) {
      EXPECT_EQ(finding.evidence.size(), 12u);
    } else {
      EXPECT_EQ(finding.evidence.back().log.value(), row) << mark << " cites its own line";
    }
  }
  EXPECT_EQ(AddEvidence(finding, store, 3), "[E4]");
  EXPECT_EQ(AddEvidence(finding, store, 19), "");
}

TEST(LogCause, TheLocalRankOfTorchrunIsNoGlobalOne) {
  const std::string failed =
      "E1129 21:14:01.000000 9 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) "
      "local_rank: 1 (pid: 1234) of binary: /usr/bin/python3\n";
  const std::string report =
      "Traceback (most recent call last):\n  File \"torchrun\", line 8, in <module>\n"
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
      "============================================================\nserve.py FAILED\n"
      "------------------------------------------------------------\nFailures:\n  <NO_OTHER_FAILURES>\n"
      "------------------------------------------------------------\nRoot Cause (first observed failure):\n[0]:\n"
      "  time      : 2026-11-29_21:14:01\n  host      : node1\n  rank      : 9 (local_rank: 1)\n"
      "  exitcode  : -9 (pid: 1234)\n  error_file: <N/A>\n";
  const auto rank = [](const std::string& text) -> std::optional<int> {
    const auto alarms = Alarms(Causes({text}));
    EXPECT_GE(alarms.size(), 1u);
    return alarms.empty() ? std::optional(-1) : alarms[0].culprit.rank;
  };
  EXPECT_EQ(rank(failed + report), 9);
  EXPECT_EQ(rank(failed), std::nullopt);
  EXPECT_EQ(rank("(Worker_TP5 pid=1234) INFO 11-29 21:13:01 [a.py:1] ready\n" + failed), 5);
  std::string huge = report;
  huge.replace(huge.find(": 9 ("), 5, ": 4294967301 (");
  EXPECT_EQ(rank(failed + huge), std::nullopt);
}

TEST(LogCause, RefusedRequestsAreTheClients) {
  std::string text;
  for (int i = 1; i <= 4; ++i) {
    text += "0.07.27" + std::to_string(i) +
            ".591 E srv    send_error: task id = 68, error: request (1300 tokens) exceeds the available context size "
            "(1024 tokens)\n";
  }
  const auto alarms = Alarms(Causes({text}));
  ASSERT_EQ(alarms.size(), 1u);
  EXPECT_EQ(alarms[0].fault, FaultClass::kClientError);
  EXPECT_EQ(alarms[0].culprit.process, "client");
  EXPECT_FALSE(alarms[0].culprit.rank.has_value());
  EXPECT_TRUE(Alarms(Causes({"INFO:     127.0.0.1:1 - \"GET /metrics HTTP/1.1\" 404 Not Found\n"
                             "INFO:     127.0.0.1:1 - \"POST /v1/completions HTTP/1.1\" 400 Bad Request\n"}))
                  .empty());
}

TEST(LogCause, TextOfClientsIsNoEvidence) {
  EXPECT_TRUE(
      Causes({"[2026-11-29 20:46:50] Receive: obj=GenerateReqInput(text='CUDA out of memory. Worker proc X died "
              "unexpectedly')\n"
              "INFO 01-17 03:11:25 [logger.py:1] Received request cmpl-1: prompt: 'NVRM: CUDA error: out of memory'\n"})
          .findings.empty());
}

TEST(LogCause, FullDiskInSharedMemoryAndEccAndAssertHaveTheirClass) {
  const auto fault = [](std::string_view line) {
    const auto alarms = Alarms(Causes({line}));
    return alarms.size() == 1 ? alarms[0].fault : FaultClass::kUnknown;
  };
  EXPECT_EQ(fault("h:1:2 [0] misc/shmutils.cc:72 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-x "
                  "(size 7340384)\n"),
            FaultClass::kProcDeath);
  EXPECT_EQ(fault("RuntimeError: CUDA error: uncorrectable ECC error encountered\n"), FaultClass::kGpuHwFault);
  EXPECT_EQ(fault("2025-04-14T15:51:36Z ERROR shard: CUDA error: device-side assert triggered\n"),
            FaultClass::kGpuAppFault);
  EXPECT_EQ(fault("h:1:2 [0] NCCL WARN NET/IB : mlx5_0:1 Got async event : port error\n"), FaultClass::kNetLinkFault);
  EXPECT_EQ(fault("(raylet) [2025-04-02 15:02:00,117 E 1 1] (raylet) node_manager.cc:3069: 1 Workers (tasks / actors) "
                  "killed due to memory pressure (OOM)\n"),
            FaultClass::kProcDeath);
}

TEST(LogCause, NothingInNothing) {
  EXPECT_TRUE(Causes({""}).findings.empty());
  EXPECT_TRUE(FindLogCauses(trace::Store()).findings.empty());
  EXPECT_TRUE(FindCommRecordCauses(trace::Store()).findings.empty());
}

}  // namespace
}  // namespace teller::locate
