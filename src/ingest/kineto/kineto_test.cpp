#include "ingest/kineto/kineto.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.hpp"
#include "ingest/common/engine.hpp"
#include "ingest/kineto/category.hpp"
#include "ingest/kineto/kineto_test_support.hpp"
#include "ingest/kineto/processes.hpp"

namespace teller::ingest {
namespace {

using trace::SpanKind;

TEST(Kineto, ReadsObjectsAndBareArrays) {
  for (const std::string& text : {"{\"schemaVersion\":1,\"traceEvents\":[" + Event("a", "1.5", "2.25") + "]}",
                                  "[" + Event("a", "1.5", "2.25") + "]"}) {
    const auto store = ReadText(text);
    ASSERT_EQ(store.spans.size(), 1u);
    EXPECT_EQ(store.name(0), "a");
    EXPECT_EQ(store.spans.begin[0], 1500);
    EXPECT_EQ(store.spans.duration[0], 2250);
    EXPECT_EQ(store.kind(0), SpanKind::kOp);
    EXPECT_EQ(store.track_of(0).tid, "2");
    EXPECT_EQ(store.process_of(0).pid, "1");
    EXPECT_FALSE(store.diagnostics.LostInput());
  }
}

TEST(Kineto, BaseTimeCountsWhereverItStands) {
  const std::string events = "\"traceEvents\":[" + Event("a", "5129590706927.034", "1") + "]";
  const std::string base = "\"baseTimeNanoseconds\": 1790857026000000000";
  for (const std::string& text : {"{" + base + "," + events + "}", "{" + events + "," + base + "}"}) {
    const auto store = ReadText(text);
    ASSERT_EQ(store.spans.size(), 1u);
    EXPECT_EQ(store.spans.begin[0], 1795986616706927034);
  }
}

TEST(Kineto, TopLevelKeysAroundTheEventsAreFoundAndExtrasSkipped) {
  const auto store =
      ReadText(R"({"metadata":{"x":[1,{"traceEvents":"no"}],"s":"]}\""},"INFO":["a","b"],"traceEvents":[)" +
               Event("a", "1", "1") +
               R"(],"distributedInfo":{"backend":"nccl","rank":3,"world_size":8},"host_name":"h\u0041","n":-1.5e3})");
  ASSERT_EQ(store.processes.size(), 1u);
  EXPECT_EQ(store.files[0].rank, 3);
  EXPECT_EQ(store.processes[0].rank, 3);
  EXPECT_EQ(store.processes[0].world_size, 8);
  EXPECT_EQ(store.processes[0].host, "hA");
  EXPECT_FALSE(store.diagnostics.LostInput());
}

TEST(Kineto, AnArrayMayEndInAnEmptyElementAndStayOpen) {
  const auto closed = ReadText("[" + Event("a", "1", "1") + ",\n{}]");
  EXPECT_EQ(closed.spans.size(), 1u);
  EXPECT_EQ(closed.files[0].dropped, 1u);
  EXPECT_EQ(closed.diagnostics.Count("trace.empty_element"), 1u);
  EXPECT_FALSE(closed.diagnostics.LostInput());
  const auto open = ReadText("[\n" + Event("a", "1", "1") + ",\n");
  EXPECT_EQ(open.spans.size(), 1u);
  EXPECT_EQ(open.diagnostics.Count("trace.unclosed"), 1u);
  EXPECT_FALSE(open.diagnostics.LostInput());
}

TEST(Kineto, SpansAreSortedByBeginThenEndDescendingThenInput) {
  const auto store =
      ReadText("[" + Event("late", "9", "1") + "," + Event("inner", "1", "2") + "," + Event("outer", "1", "5") + "," +
               Event("same1", "3", "1") + "," + Event("same2", "3", "1") + "]");
  std::string order;
  for (size_t i = 0; i < store.spans.size(); ++i) order += std::string(store.name(i)) + " ";
  EXPECT_EQ(order, "outer inner same1 same2 late ");
}

TEST(Kineto, ArgsStayWithTheirSpans) {
  const auto store = ReadText(
      "[" + Event("mm", "5", "1", R"(,"args":{"External id":7,"Input Dims":[[2, 3], []],"Input type":["float"]})") +
      "," +
      R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":6,"dur":1,"args":{"device":0,"stream":7,"correlation":11,"graph node id":5,"External id":7,"Collective name":"allreduce","Process Group Name":"tp","Group size":2,"In msg nelems":64,"dtype":"Float","Process Group Ranks":"[0, 1]","Seq":3}},)" +
      R"({"ph":"X","cat":"gpu_memcpy","name":"c","pid":0,"tid":7,"ts":8,"dur":1,"args":{"stream":7,"correlation":12,"bytes":4096}},)" +
      R"({"ph":"X","cat":"python_function","name":"f","pid":1,"tid":2,"ts":1,"dur":9,"args":{"Python id":4,"Python parent id":null,"Python module id":2}},)" +
      R"({"ph":"X","cat":"op","name":"mul_mat","pid":1,"tid":2,"ts":2,"dur":1,"args":{"tensor":"ffn_out-19"}},)" +
      R"({"ph":"X","cat":"llama","name":"decode","pid":1,"tid":2,"ts":2,"dur":3,"args":{"ret":0,"n_tokens":17}}])");
  ASSERT_EQ(store.spans.size(), 6u);
  const auto row = [&store](std::string_view name) {
    for (uint32_t i = 0; i < store.spans.size(); ++i) {
      if (store.name(i) == name) return i;
    }
    return UINT32_MAX;
  };
  const auto* mm = store.op_args.Find(row("mm"));
  ASSERT_NE(mm, nullptr);
  EXPECT_EQ(store.text(mm->input_dims), "[[2, 3], []]");
  EXPECT_EQ(mm->external_id, 7u);
  const auto* kernel = store.gpu_args.Find(row("k"));
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->correlation, 11u);
  EXPECT_EQ(kernel->graph_node, 5u);
  EXPECT_EQ(kernel->stream, 7);
  const auto* comm = store.comm_args.Find(row("k"));
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(store.text(comm->collective), "allreduce");
  EXPECT_EQ(store.text(comm->group_ranks), "[0, 1]");
  EXPECT_EQ(comm->in_elements, 64);
  EXPECT_EQ(comm->sequence, 3);
  EXPECT_EQ(store.gpu_args.Find(row("c"))->bytes, 4096);
  EXPECT_EQ(store.py_args.Find(row("f"))->id, 4u);
  EXPECT_EQ(store.py_args.Find(row("f"))->parent_id, 0u);
  EXPECT_EQ(store.text(store.op_args.Find(row("mul_mat"))->label), "ffn_out-19");
  const auto attributes = store.attributes.FindAll(row("decode"));
  ASSERT_EQ(attributes.size(), 2u);
  EXPECT_EQ(store.text(attributes[1].key), "n_tokens");
  EXPECT_EQ(store.text(attributes[1].value), "17");
  EXPECT_EQ(store.process_of(row("k")).pid, "1") << "device lanes belong to the profiled process";
  EXPECT_TRUE(store.track_of(row("k")).is_stream);
  EXPECT_EQ(store.track_of(row("k")).stream, 7);
  EXPECT_EQ(store.process_of(0).engine, "llama.cpp");
}

TEST(Kineto, ArgsMayStandBeforeTheCategory) {
  const auto store = ReadText(
      R"([{"args":{"External id":7,"Input Dims":[[1]],"n":1},"name":"a","ts":1,"dur":1,"tid":1,"pid":1,"cat":"cpu_op","ph":"X"}])");
  ASSERT_EQ(store.op_args.size(), 1u);
  EXPECT_EQ(store.text(store.op_args.value(0).input_dims), "[[1]]");
  EXPECT_EQ(store.attributes.size(), 0u);
}

TEST(Kineto, EveryPhaseIsStoredOrCounted) {
  const auto store = ReadText(R"([
    {"ph":"B","cat":"c","name":"b","pid":1,"tid":1,"ts":1},
    {"ph":"B","cat":"c","name":"nested","pid":1,"tid":1,"ts":2},
    {"ph":"E","pid":1,"tid":1,"ts":3},
    {"ph":"E","pid":1,"tid":1,"ts":7},
    {"ph":"E","pid":1,"tid":1,"ts":8},
    {"ph":"B","cat":"c","name":"open","pid":1,"tid":1,"ts":9},
    {"ph":"b","cat":"req","name":"r","id":"0x1","pid":1,"tid":1,"ts":1},
    {"ph":"n","cat":"req","name":"token","id":"0x1","pid":1,"tid":1,"ts":2},
    {"ph":"e","cat":"req","name":"r","id":"0x1","pid":1,"tid":1,"ts":4},
    {"ph":"i","s":"t","name":"point","pid":1,"tid":1,"ts":5},
    {"ph":"C","name":"mem","pid":1,"ts":5,"args":{"a":1.5,"b":2}},
    {"ph":"C","name":"bad","pid":1,"ts":5,"args":{"a":"x"}},
    {"ph":"s","id":5,"name":"ac2g","cat":"ac2g","pid":1,"tid":1,"ts":5},
    {"ph":"t","id":5,"name":"ac2g","cat":"ac2g","pid":1,"tid":1,"ts":6},
    {"ph":"f","id":5,"bp":"e","name":"ac2g","cat":"ac2g","pid":1,"tid":1,"ts":7},
    {"ph":"M","name":"process_name","pid":1,"args":{"name":"VLLM::Worker_TP0"}},
    {"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"main "}},
    {"ph":"M","name":"thread_sort_index","pid":1,"tid":1,"args":{"sort_index":1}},
    {"ph":"N","name":"o","id":1,"pid":1,"tid":1,"ts":5},
    {"ph":"D","name":"o","id":1,"pid":1,"tid":1,"ts":6},
    {"ph":"X","cat":"c","name":"x","pid":1,"tid":1,"ts":6,"dur":6,"bind_id":"0x402","flow_out":true}
  ])");
  const auto& file = store.files[0];
  EXPECT_EQ(file.records_read, 21u);
  EXPECT_EQ(file.spans, 5u);
  EXPECT_EQ(file.repaired_away, 3u);
  EXPECT_EQ(file.instants, 2u);
  EXPECT_EQ(file.counters, 1u);
  EXPECT_EQ(file.flows, 3u);
  EXPECT_EQ(file.metadata, 3u);
  EXPECT_EQ(file.dropped, 4u);
  EXPECT_EQ(store.diagnostics.Count("trace.unmatched_end"), 1u);
  EXPECT_EQ(store.diagnostics.Count("trace.unmatched_begin"), 1u);
  EXPECT_EQ(store.diagnostics.Count("trace.unused_phase"), 2u);
  EXPECT_EQ(store.diagnostics.Count("trace.bad_counter"), 1u);
  EXPECT_EQ(store.counters.size(), 2u);
  EXPECT_EQ(store.counter_series[store.counters[1].series.value()].name, "mem/b");
  EXPECT_EQ(store.flows.size(), 4u);
  EXPECT_EQ(store.processes[0].name, "Worker_TP0");
  EXPECT_EQ(store.processes[0].engine, "vllm");
  EXPECT_EQ(store.tracks[0].name, "main");
  for (size_t i = 0; i < store.spans.size(); ++i) {
    if (store.name(i) == "b") {
      EXPECT_EQ(store.spans.duration[i], 6000);
    }
    if (store.name(i) == "nested") {
      EXPECT_EQ(store.spans.duration[i], 1000);
    }
    if (store.name(i) == "open") {
      EXPECT_EQ(store.spans.end(i), 12000) << "up to the end of the recording";
    }
    if (store.name(i) == "r") {
      EXPECT_EQ(store.track_of(i).tid, "async 0x1");
    }
  }
}

TEST(Kineto, FlowEndsOnADeviceJoinTheDevicesLane) {
  const auto store = ReadText(
      R"([{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":6,"dur":1,"args":{"stream":7,"correlation":1}},
          {"ph":"f","id":1,"name":"ac2g","cat":"ac2g","pid":0,"tid":7,"ts":6}])");
  EXPECT_EQ(store.tracks.size(), 1u);
  EXPECT_EQ(store.flows[0].track, store.spans.track[0]);
}

TEST(Kineto, AnIdleProcessIsNoLoss) {
  const auto store = ReadText(
      R"json({"schemaVersion":1,"vllm_version":"0.11","traceEvents":[
        {"ph":"M","name":"process_name","ts":5.5,"pid":16333,"tid":0,"args":{"name":"python3"}},
        {"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler","ts":5.5,"dur":2784059.400,"args":{"Op count":0}},
        {"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":6}]})json");
  EXPECT_EQ(store.files[0].note, "empty: an idle process");
  EXPECT_FALSE(store.files[0].rank.has_value());
  ASSERT_EQ(store.processes.size(), 1u);
  EXPECT_EQ(store.processes[0].pid, "16333");
  EXPECT_EQ(store.processes[0].name, "");
  EXPECT_EQ(store.processes[0].engine, "vllm");
  EXPECT_FALSE(store.diagnostics.LostInput());
}

TEST(Kineto, AFileThatLostItsSpansIsNotCalledIdle) {
  const auto store = ReadText(R"([{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":"soon","dur":1}])");
  EXPECT_TRUE(store.diagnostics.LostInput());
  EXPECT_EQ(store.files[0].note.find("idle"), std::string::npos);
}

TEST(Kineto, OldSchemaAndOtherAcceleratorsHaveTheirKinds) {
  EXPECT_EQ(KindOfCategory("Operator"), SpanKind::kOp);
  EXPECT_EQ(KindOfCategory("Kernel"), SpanKind::kKernel);
  EXPECT_EQ(KindOfCategory("Runtime"), SpanKind::kRuntime);
  EXPECT_EQ(KindOfCategory("Memcpy"), SpanKind::kCopy);
  EXPECT_EQ(KindOfCategory("mtia_runtime"), SpanKind::kRuntime);
  EXPECT_EQ(KindOfCategory("async_gpu"), SpanKind::kOther);
}

TEST(Kineto, InterpretersNamesTellNothing) {
  EXPECT_EQ(EngineProcessName("VLLM::Worker"), "Worker");
  EXPECT_EQ(EngineProcessName("VLLM::Worker_TP0"), "Worker_TP0");
  EXPECT_EQ(EngineProcessName("sglang::scheduler_TP0"), "scheduler_TP0");
  EXPECT_EQ(EngineProcessName("python3.10"), "");
  EXPECT_EQ(EngineProcessName("python"), "");
  EXPECT_EQ(EngineProcessName("pythonista"), "pythonista");
}

/// Many windows, several files, shuffled events: the same spans whatever the order and thread count.
TEST(Kineto, OrderOfRecordsAndThreadCountDoNotMatter) {
  base::Rng rng(3);
  std::vector<std::string> events;
  for (int i = 0; i < 30000; ++i) {
    events.push_back(Event("op" + std::to_string(i % 50), std::to_string(i * 10) + ".5", std::to_string(1 + i % 40),
                           R"(,"args":{"External id":)" + std::to_string(i + 1) + "}"));
  }
  const auto join = [&events] {
    std::string text = "[";
    for (const auto& event : events) {
      if (text.size() > 1) text += ",";
      text += event;
    }
    text += "]";
    return text;
  };
  const auto check = [](const trace::Store& a, const trace::Store& b) {
    ASSERT_EQ(a.spans.begin, b.spans.begin);
    ASSERT_EQ(a.spans.duration, b.spans.duration);
    ASSERT_EQ(a.op_args.size(), b.op_args.size());
    for (size_t i = 0; i < a.op_args.size(); ++i) {
      ASSERT_EQ(a.op_args.row(i), b.op_args.row(i));
      ASSERT_EQ(a.op_args.value(i).external_id, b.op_args.value(i).external_id);
      ASSERT_EQ(a.name(i), b.name(i));
    }
  };
  const auto sorted = ReadText(join(), {.threads = 1});
  ASSERT_EQ(sorted.spans.size(), events.size());
  check(sorted, ReadText(join(), {.threads = 4}));
  for (size_t i = events.size() - 1; i > 0; --i) std::swap(events[i], events[rng.Below(i + 1)]);
  check(sorted, ReadText(join(), {.threads = 1}));
  check(sorted, ReadText(join(), {.threads = 3}));
}

TEST(Kineto, SeveralFilesKeepTheirOrderAndProcesses) {
  const TestFolder folder;
  folder.Write("traces/rank1.json.gz", Gzip("[" + Event("b", "1", "1") + "]"));
  folder.Write("traces/rank0.json", "[" + Event("a", "2", "1") + "]");
  auto store = ReadRun({.paths = {folder.path()}, .logs = {}}, {.threads = 4});
  ASSERT_TRUE(store.has_value());
  ASSERT_EQ(store->files.size(), 2u);
  EXPECT_EQ(store->files[0].path, "traces/rank0.json");
  EXPECT_EQ(store->files[0].rank, 0);
  EXPECT_EQ(store->files[1].rank, 1);
  EXPECT_EQ(store->name(0), "a");
  EXPECT_EQ(store->process_of(1).file.value(), 1u);
}

TEST(Kineto, SendsAndReceivesNameTheOtherRank) {
  const auto store = ReadText(
      R"([{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":6,"dur":1,"args":{"Collective name":"send","Dst Rank":3}},)"
      R"({"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":8,"dur":1,"args":{"Collective name":"recv","Src Rank":0}},)"
      R"({"ph":"X","cat":"kernel","name":"c","pid":0,"tid":7,"ts":9,"dur":1,"args":{"Collective name":"allreduce"}}])");
  ASSERT_EQ(store.spans.size(), 3u);
  EXPECT_EQ(store.comm_args.Find(0)->peer, 3);
  EXPECT_EQ(store.comm_args.Find(1)->peer, 0);
  EXPECT_EQ(store.comm_args.Find(2)->peer, -1);
}

}  // namespace
}  // namespace teller::ingest
