#include "ingest/nccl_inspector/nccl_inspector.hpp"

#include <gtest/gtest.h>

namespace teller::ingest {
namespace {

trace::Store Read(std::string_view text) {
  trace::Store store;
  store.files.emplace_back();
  store.files[0].path = "node0-pid7.log";
  auto source = base::OpenMemory(text);
  EXPECT_TRUE(ReadInspector(*source, trace::FileRow(0), store, {}).ok());
  const trace::File& file = store.files[0];
  EXPECT_EQ(file.records_read, file.spans + file.metadata + file.dropped);
  EXPECT_EQ(file.spans, store.comm_perf.size());
  return store;
}

constexpr std::string_view kHeader = R"({"header":{"id":"0xabc","rank":2,"n_ranks":8,"nnodes":1},)"
                                     R"("metadata":{"dump_timestamp_us":1748030377748202,"hostname":"node0","pid":7},)";

TEST(Inspector, ReadsCollectivesSendsAndWhoMeasured) {
  const auto store = Read(
      std::string(kHeader) +
      R"("coll_perf":{"coll":"AllReduce","coll_algo":"RING","coll_sn":1407,"coll_msg_size_bytes":17179869184,)"
      R"("coll_exec_time_us":61974.5,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":277.2,"coll_busbw_gbs":485.1}})"
      "\n" +
      std::string(kHeader) +
      R"("p2p_perf":{"p2p":"Send","p2p_sn":3,"p2p_peer":5,"p2p_msg_size_bytes":4096,"p2p_exec_time_us":12}})");
  ASSERT_EQ(store.comm_perf.size(), 2u);
  const auto& a = store.comm_perf[0];
  EXPECT_EQ(store.text(a.comm), "0xabc");
  EXPECT_EQ(store.text(a.host), "node0");
  EXPECT_EQ(store.text(a.op), "AllReduce");
  EXPECT_EQ(store.text(a.algo), "RING");
  EXPECT_EQ(store.text(a.timing), "kernel_gpu");
  EXPECT_EQ(std::tuple(a.rank, a.nranks, a.nodes, a.peer, a.pid), std::tuple(2, 8, 1, -1, 7));
  EXPECT_EQ(std::tuple(a.sequence, a.bytes, a.duration, a.at),
            std::tuple(1407, 17179869184, 61'974'500, 1748030377748202000));
  EXPECT_DOUBLE_EQ(a.bus_gbs, 485.1);
  EXPECT_EQ(store.comm_perf[1].peer, 5);
  EXPECT_EQ(store.comm_perf[1].line, 2u);
  EXPECT_EQ(store.files[0].rank, 2);
}

TEST(Inspector, RecordsBehindADumpsFirstLineAreOfItsCommunicator) {
  const std::string perf = R"({"coll_perf":{"coll":"AllGather","coll_sn":1,"coll_exec_time_us":5}})"
                           "\n";
  const std::string stats =
      std::string(kHeader) + R"("dump_stats":{"coll_records":2,"coll_dropped_since_last_dump":4}})" + "\n";
  EXPECT_EQ(Read(perf).diagnostics.Count("nccl-inspector.no-context"), 1u);
  const auto store = Read(perf + stats + perf + perf);
  EXPECT_EQ(store.comm_perf.size(), 2u);
  EXPECT_EQ(store.comm_perf[1].rank, 2);
  EXPECT_EQ(store.files[0].metadata, 1u);
  EXPECT_EQ(store.diagnostics.Count("nccl-inspector.ring-full"), 4u);
}

TEST(Inspector, AProcessOfTwoEqualCommunicatorsHasNoRankInTheJob) {
  const auto line = [](const char* id, int rank, int n) {
    return std::string(R"({"header":{"id":")") + id + R"(","rank":)" + std::to_string(rank) + R"(,"n_ranks":)" +
           std::to_string(n) + R"(},"coll_perf":{"coll":"AllReduce","coll_sn":1,"coll_exec_time_us":5}})" + "\n";
  };
  EXPECT_EQ(Read(line("0xa", 1, 2) + line("0xb", 3, 4)).files[0].rank, 3);
  EXPECT_EQ(Read(line("0xb", 3, 4) + line("0xa", 1, 2)).files[0].rank, 3);
  EXPECT_FALSE(Read(line("0xa", 1, 4) + line("0xb", 3, 4)).files[0].rank.has_value());
}

TEST(Inspector, KnowsItsFilesByTheirFirstLine) {
  EXPECT_TRUE(LooksLikeInspector(std::string(kHeader) + R"("coll_perf":{"coll":"x","coll_sn":1}})"));
  for (const auto* other :
       {R"({"traceEvents":[]})", R"({"message":"coll_perf","level":"INFO"})", "[1]", "", R"({"a":1})"}) {
    EXPECT_FALSE(LooksLikeInspector(other)) << other;
  }
}

}  // namespace
}  // namespace teller::ingest
