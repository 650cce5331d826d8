#include "ingest/log/nccl_line.hpp"

#include <gtest/gtest.h>

#include "ingest/log/log_reader.hpp"
#include "ingest/log/nccl_topology.hpp"

namespace teller::ingest {
namespace {

trace::Store Read(std::string_view text) {
  trace::Store store;
  store.files.emplace_back();
  store.files[0].path = "a.log";
  auto source = base::OpenMemory(text);
  EXPECT_TRUE(ReadLog(*source, trace::FileRow(0), store, {}).ok());
  const trace::File& file = store.files[0];
  EXPECT_EQ(file.records_read, file.log_records + file.repaired_away + file.dropped) << text;
  return store;
}

/// Messages of the NCCL records, without the lines that joined them: an indented fragment continues the record before
/// it.
std::vector<std::string> NcclMessages(std::string_view text) {
  const auto store = Read(text);
  std::vector<std::string> out;
  for (const auto& record : store.logs) {
    if (record.source == trace::LogSource::kNccl) out.push_back(record.message.substr(0, record.message.find('\n')));
  }
  EXPECT_EQ(store.nccl_writers.size(), out.size());
  return out;
}

TEST(NcclLine, ReadsEveryFormOfTheHeader) {
  const auto check = [](std::string_view line, int device, std::string_view logger, std::string_view message) {
    const auto header = log::ParseNcclHeader(line);
    ASSERT_TRUE(header.has_value()) << line;
    EXPECT_EQ(header->host, "gpu-1.x");
    EXPECT_EQ(header->pid, 12);
    EXPECT_EQ(header->tid, 34);
    EXPECT_EQ(header->device, device);
    EXPECT_EQ(header->logger, logger);
    EXPECT_EQ(line.substr(header->message), message);
  };
  check("gpu-1.x:12:34 [3] NCCL INFO hello", 3, "", "hello");
  check("gpu-1.x:12:34 [0] misc/socket.cc:50 NCCL WARN Call failed", 0, "misc/socket.cc:50", "Call failed");
  check("gpu-1.x:12:34 NCCL CALL ncclInit()", -1, "", "ncclInit()");
  check("gpu-1.x:12:34 [1] 12.5 ncclFoo:7 NCCL TRACE x", 1, "12.5 ncclFoo:7", "x");
  for (const auto* other :
       {"gpu 1:2 NCCL INFO x", "a:b:c [0] NCCL INFO x", "a:1:2 [0] NCCL DEBUG x", "a:1:2 [0] no mark"}) {
    EXPECT_FALSE(log::ParseNcclHeader(other).has_value()) << other;
  }
}

TEST(NcclLine, LinesInsideOtherOutputAreRecords) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(NcclMessages("h:1:2 [0] NCCL INFO a\nstep 5 loss=0.1 h:1:2 [0] NCCL INFO b\n"), (Texts{"a", "b"}));
  // The host is glued to what stands before it; lines before tell how it is called.
  EXPECT_EQ(NcclMessages("n0:1:2 [0] NCCL INFO a\n   83.3  0n0:1:2 [0] NCCL INFO b\n"), (Texts{"a", "b"}));
  // One NCCL line inside another one.
  EXPECT_EQ(NcclMessages("n0:1:2 [0] NCCL INFO Channel 00/0 : 0[0] n0:3:4 [1] NCCL INFO b\n"),
            (Texts{"Channel 00/0 : 0[0]", "b"}));
  // Other loggers and containers pass lines on: one record each, with the outer stamp.
  EXPECT_EQ(NcclMessages("INFO 07-01 10:00:00 [w.py:1] n0:1:2 [0] NCCL INFO a\n"), (Texts{"a"}));
  EXPECT_EQ(NcclMessages("(Worker pid=7) n0:1:2 [0] NCCL INFO a\n[rank3]: n0:1:2 [0] NCCL INFO b\n"),
            (Texts{"a", "b"}));
  EXPECT_EQ(NcclMessages("[2026-01-01 10:00:00] n0:1:2 [0] misc.cc:5 NCCL WARN a\n"), (Texts{"a"}));
  EXPECT_EQ(Read("INFO 07-01 10:00:00 [w.py:1] n0:1:2 [0] NCCL INFO a\n").logs.size(), 1u);
  // Words about NCCL are none.
  EXPECT_EQ(
      NcclMessages("ready at 10:00:00 NCCL INFO is on\nERROR 07-01 10:00:00 [w.py:1] NCCL error, NCCL WARN above\n"),
      (Texts{}));
}

TEST(NcclTopology, LateConnectionsFindTheirCommunicatorByProcessDeviceAndRank) {
  // One process, two devices, two communicators; the second one turns the ranks round.
  std::string text;
  const auto init = [&](int tid, int dev, int rank, const char* id, const char* what) {
    text += "h:9:" + std::to_string(tid) + " [" + std::to_string(dev) + "] NCCL INFO ncclCommInitRank comm 0x" +
            std::to_string(tid) + " rank " + std::to_string(rank) + " nranks 2 cudaDev " + std::to_string(dev) +
            " nvmlDev 0 busId " + std::to_string(dev + 1) + "000 commId " + id + " - Init " + what + "\n";
  };
  for (const char* what : {"START", "COMPLETE"}) {
    init(1, 0, 0, "0xa", what);
    init(2, 1, 1, "0xa", what);
  }
  text += "h:9:50 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer\n";
  for (const char* what : {"START", "COMPLETE"}) {
    init(3, 0, 1, "0xb", what);
    init(4, 1, 0, "0xb", what);
  }
  text += "h:9:51 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[1] via SHM/direct/direct\n";
  text += "h:9:51 [0] NCCL INFO Channel 01/0 : 7[0] -> 0[1] via SHM/direct/direct\n";  // of no rank that is here
  auto store = Read(text);
  BuildCommunicators(store);
  ASSERT_EQ(store.communicators.size(), 2u);
  ASSERT_EQ(store.communicators[0].peers.size(), 1u);
  EXPECT_EQ(store.communicators[0].peers[0].via, "P2P/direct pointer");
  EXPECT_EQ(store.communicators[0].peers[0].transport, trace::Transport::kP2p);
  ASSERT_EQ(store.communicators[1].peers.size(), 1u);
  EXPECT_EQ(store.communicators[1].peers[0].transport, trace::Transport::kShm);
  EXPECT_EQ(store.communicators[1].ranks[0].bus_id, "2000");
  EXPECT_EQ(store.diagnostics.Count("log.nccl-unassigned"), 1u);
}

}  // namespace
}  // namespace teller::ingest
