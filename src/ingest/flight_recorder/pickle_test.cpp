// The pickle machine: plain data comes out as it went in, everything else is refused by name.
#include <gtest/gtest.h>

#include "ingest/flight_recorder/flight_recorder.hpp"
#include "ingest/flight_recorder/notation.hpp"

namespace teller::ingest {
namespace {

using flight_recorder::Minify;
using flight_recorder::ParsePickle;
using flight_recorder::PickleEnd;
using flight_recorder::Value;
using namespace std::string_literals;

/// The pickle as JSON, or its error behind "!".
std::string Unpickle(const std::string& bytes) {
  PickleEnd end;
  const auto tree = ParsePickle(bytes, end);
  if (!tree) return "!" + tree.error().message;
  std::string out;
  return Minify(Value(*tree, tree->root), 4096, out) ? out : "!too large";
}

TEST(Pickle, EveryNotationOfPlainData) {
  const std::pair<std::string, std::string> cases[] = {
      {"N.", "null"},
      {"I01\n.", "true"},
      {"I00\n.", "false"},
      {"I-7\n.", "-7"},
      {"L123L\n.", "123"},
      {"F0.5\n.", "0.5"},
      {"S'it\\'s \\x41'\n.", "\"it's A\""},
      {"V\\u20ac\n.", "\"\xE2\x82\xAC\""},
      {"G\x3f\xe0\x00\x00\x00\x00\x00\x00."s, "0.5"},
      {"K\xff.", "255"},
      {"M\x01\x02.", "513"},
      {"J\xff\xff\xff\xff.", "-1"},
      {"U\x02hi.", "\"hi\""},
      {"T\x02\x00\x00\x00hi."s, "\"hi\""},
      {"X\x02\x00\x00\x00hi."s, "\"hi\""},
      {"\x8c\x02hi.", "\"hi\""},
      {"\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi."s, "\"hi\""},
      {"C\x02hi.", "\"hi\""},
      {"B\x02\x00\x00\x00hi."s, "\"hi\""},
      {"\x88.", "true"},
      {"\x89.", "false"},
      {"\x8a\x00."s, "0"},
      {"\x8a\x01\xff.", "-1"},
      {"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.", "9223372036854775807"},
      {"\x8b\x02\x00\x00\x00\x00\x01."s, "256"},
      {"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\x00."s, "9223372036854775807"},
      {"].", "[]"},
      {").", "[]"},
      {"}.", "{}"},
      {"(K\x01K\x02t.", "[1,2]"},
      {"(K\x01K\x02l.", "[1,2]"},
      {"(K\x01K\x02"
       "d.",
       "{1:2}"},
      {"K\x01\x85.", "[1]"},
      {"K\x01K\x02\x86.", "[1,2]"},
      {"K\x01K\x02K\x03\x87.", "[1,2,3]"},
      {"]K\x01"
       "a.",
       "[1]"},
      {"](K\x01K\x02"
       "e.",
       "[1,2]"},
      {"}K\x01K\x02s.", "{1:2}"},
      {"}(K\x01K\x02u.", "{1:2}"},
      {"\x8f(K\x01\x90.", "[1]"},
      {"(K\x01\x91.", "[1]"},
      {"]q\x05h\x05"
       "0.",
       "[]"},
      {"(K\x01\x31K\x02.", "2"},
      {"K\x01\x32\x86.", "[1,1]"},
      {"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00]\x94h\x00\x86."s, "[[],[]]"},
      {"(lp0\nI1\nag0\n\x86.", "[[1],[1]]"},
      {"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."s, "1e+300"},  // beyond int64: no number that is used
  };
  for (const auto& [bytes, json] : cases) EXPECT_EQ(Unpickle(bytes), json) << testing::PrintToString(bytes);
}

TEST(Pickle, WhatBuildsObjectsIsRefusedByName) {
  const std::pair<std::string, std::string> cases[] = {
      {"cos\nsystem\n(S'touch x'\ntR.", "GLOBAL"},
      {"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94.", "STACK_GLOBAL"},
      {"K\x01)R.", "REDUCE"},
      {"K\x01}b.", "BUILD"},
      {"(S'id'\nios\nsystem\n.", "INST"},
      {"(K\x01o.", "OBJ"},
      {"K\x01)\x81.", "NEWOBJ"},
      {"K\x01)}\x92.", "NEWOBJ_EX"},
      {"\x82\x01.", "EXT1"},
      {"\x83\x01\x01.", "EXT2"},
      {"\x84\x01\x01\x01\x01.", "EXT4"},
      {"Pid\n.", "PERSID"},
      {"K\x01Q.", "BINPERSID"},
      {"\x97.", "NEXT_BUFFER"},
      {"K\x01\x98.", "READONLY_BUFFER"},
  };
  for (const auto& [bytes, name] : cases) {
    PickleEnd end;
    const auto tree = ParsePickle(bytes, end);
    ASSERT_FALSE(tree) << name;
    EXPECT_EQ(tree.error().code, base::Code::kUnsupported);
    EXPECT_NE(tree.error().message.find("(opcode " + name + ")"), std::string::npos) << tree.error().message;
    EXPECT_EQ(tree.error().message.find('\n'), std::string::npos);
  }
}

TEST(Pickle, DamageIsAnErrorAtEveryByte) {
  const std::string whole =
      "\x80\x02}q\x00(X\x01\x00\x00\x00"
      "aq\x01](K\x01M\x02\x03J\x01\x00\x00\x00\x8a\x01\x05G\x3f\xe0\x00\x00\x00\x00\x00\x00"s +
      "N\x88"
      "eX\x01\x00\x00\x00"
      "bh\x01\x85u."s;
  EXPECT_EQ(Unpickle(whole), R"({"a":[1,770,1,5,0.5,null,true],"b":["a"]})");
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_EQ(Unpickle(whole.substr(0, n)).front(), '!') << n;
  for (const std::string& bytes : {"."s,
                                   "a."s,
                                   "0."s,
                                   "t."s,
                                   "u."s,
                                   "K\x01"
                                   "e."s,
                                   "(e."s,
                                   "](s."s,
                                   "h\x01."s,
                                   "q\x01."s,
                                   "(K\x01"
                                   "d."s,
                                   "}(K\x01u."s,
                                   "K\x01K\x02"
                                   "a."s,
                                   "](K\x01"
                                   "a."s,
                                   "\xff."s,
                                   "X\xff\xff\xff\xff."s,
                                   "\x8d\xff\xff\xff\xff\xff\xff\xff\xff."s,
                                   "Nr\xff\xff\xff\xff."s,
                                   "Ix\n."s,
                                   "S'x\n."s,
                                   "g-1\n."s,
                                   "Lx\n."s,
                                   "Fx\n."s}) {
    EXPECT_EQ(Unpickle(bytes).front(), '!') << testing::PrintToString(bytes);
  }
}

TEST(Pickle, AValueThatHoldsItselfEnds) {
  EXPECT_EQ(Unpickle("]q\x00h\x00"
                     "a."s),
            "!too large");
  std::string bomb = "]q\x00"s;
  for (int i = 0; i < 64; ++i)
    bomb +=
        "](h\x00h\x00"
        "eq\x00"s;  // doubles with every level
  EXPECT_EQ(Unpickle(bomb + "."), "!too large");
}

/// A dump whose one entry is named `times` times, with a text of `length` bytes in its sizes.
std::string Repeated(int times, size_t length, bool same_entry) {
  const auto text = [](const std::string& s) { return "\x8c"s + static_cast<char>(s.size()) + s; };
  std::string big = "X";
  for (int shift = 0; shift < 32; shift += 8) big += static_cast<char>(length >> shift);
  big += std::string(length, 'x') +
         "q\x07"
         "0";
  const std::string entry = "}(" + text("process_group") + text("0") + text("x") + "\x86" + text("collective_seq_id") +
                            "K\x05" + text("profiling_name") + text("nccl:all_reduce") + text("state") +
                            text("completed") + text("input_sizes") + "h\x07u";
  std::string out = "\x80\x02" + big + "}(" + text("rank") + "K\x01" + text("entries") + "](";
  if (same_entry) out += entry + "q\x08";
  for (int i = same_entry ? 1 : 0; i < times; ++i) out += same_entry ? "h\x08" : entry;
  return out + "eu.";
}

TEST(Pickle, ManyNamesOfOneValueTakeNoMoreMemoryThanTheFile) {
  for (const bool same : {true, false}) {
    const std::string bytes = Repeated(1000, 200'000, same);
    trace::Store store;
    store.files.emplace_back();
    auto source = base::OpenMemory(bytes);
    ASSERT_TRUE(ReadFlightRecorder(*source, trace::FileRow(0), store, {}).ok());
    size_t kept = 0;
    for (const auto& record : store.comm_records) kept += record.sizes.size();
    EXPECT_LT(kept, 2 * bytes.size() + (1u << 20));
    EXPECT_GE(store.comm_records.size(), 1u);
    EXPECT_EQ(store.files[0].records_read, 1000u);
    EXPECT_EQ(store.files[0].records_read, store.files[0].spans + store.files[0].dropped);
    EXPECT_EQ(store.diagnostics.Count("flight-recorder.repeated"), store.files[0].dropped);
  }
}

TEST(FlightRecorder, ReadsTheFirstVersionOfTheDump) {
  // 1.x: entries alone, or groups by number with their ranks, "seq_id", no "is_p2p".
  const auto read = [](std::string_view text) {
    trace::Store store;
    store.files.emplace_back();
    store.files[0].path = "nccl_trace_rank_2";
    auto source = base::OpenMemory(text);
    EXPECT_TRUE(ReadFlightRecorder(*source, trace::FileRow(0), store, {}).ok()) << text;
    return store;
  };
  const auto store = read(
      R"({"entries":[{"record_id":1,"pg_id":0,"seq_id":4,"profiling_name":"nccl:all_reduce","state":"started","frames":[{"name":"f","filename":"a.py","line":3}]},)"
      R"({"pg_id":1,"seq_id":2,"profiling_name":"nccl:send 0->1","state":"completed"}],"version":"1.4","pg_config":{"0":[0,1,2,3],"1":[2,3]}})");
  ASSERT_EQ(store.comm_records.size(), 2u);
  EXPECT_EQ(store.comm_records[0].group, "0");
  EXPECT_EQ(store.comm_records[0].sequence, 4);
  EXPECT_EQ(store.comm_records[0].frame, "f (a.py:3)");
  EXPECT_EQ(store.comm_groups[static_cast<size_t>(store.comm_records[0].members)], (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(store.comm_records[1].group.substr(0, 11), "1 (2 ranks,");
  EXPECT_EQ(store.comm_records[1].p2p_sequence, 2);
  EXPECT_EQ(store.comm_records[1].sequence, -1);
  // Without its ranks a numbered group other than that of all means something else on every rank.
  const std::string bare =
      "(lp0\n(dp1\nVpg_id\nI3\nsVseq_id\nI1\nsVprofiling_name\nVnccl:all_reduce\nsVstate\nVcompleted\nsa.";
  ASSERT_TRUE(LooksLikeFlightRecorder(bare));
  const auto list = read(bare);
  ASSERT_EQ(list.comm_records.size(), 1u);
  EXPECT_EQ(list.comm_records[0].sequence, 1);
  EXPECT_EQ(list.comm_records[0].group, "3 of rank 2");
  EXPECT_EQ(
      read(
          R"({"version":"2.10","pg_config":{"0":{"name":"0","desc":"x","ranks":"[0]"}},"pg_status":{"0":{"last_enqueued_collective":"9","last_completed_collective":"8"}}})")
          .comm_records.size(),
      2u);
}

}  // namespace
}  // namespace teller::ingest
