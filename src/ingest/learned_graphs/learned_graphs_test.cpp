#include "ingest/learned_graphs/learned_graphs.hpp"

#include <gtest/gtest.h>

namespace teller::ingest {
namespace {

/// A file with the right sum, whatever its lines say.
std::string Summed(const std::string& lines) {
  return lines + GraphsSumLine(lines) + "\n";
}
std::string Head(const std::string& strings, const std::string& sequences,
                 const std::string& schema = "teller.graphs/1") {
  return R"({"schema":")" + schema + R"(","strings":)" + strings + R"(,"sequences":)" + sequences + "}\n";
}
std::string Sequence(const std::string& launches) {
  return R"({"source":"capture","whole":true,"joined":false,"batch":-1,"model":0,"launches":[)" + launches + "]}\n";
}

std::string Refusal(const std::string& text) {
  trace::Store store;
  store.files.resize(1);
  auto source = base::OpenMemory(text);
  const auto status = ReadGraphs(*source, trace::FileRow(0), store, {});
  EXPECT_TRUE(status.ok() || store.learned_graphs.empty());
  return status.ok() ? "" : status.error().Text();
}

TEST(LearnedGraphsReader, TakesAWellFormedFile) {
  EXPECT_EQ(Refusal(Summed(Head("2", "1") + "\"gemm\"\n\"aten::mm\"\n" + Sequence("0,1,1,0,2,1,0,0,0,2"))), "");
  EXPECT_EQ(Refusal(Summed(Head("0", "0"))), "");
}

TEST(LearnedGraphsReader, SaysWhatIsWrongAndWhere) {
  const std::string string = "\"a\"\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1: learned graphs of the form"},
      {Summed(Head("0", "0", "teller.graphs/2")), "only teller.graphs/1 is known"},
      {Head("0", "0"), "cut off"},
      {Head("0", "0") + "{\"crc32\":\"00000000\"}\n", "damaged"},
      {Summed(Head("-1", "0")), "line 1"},
      {Summed(Head("99999999999", "0")), "larger than is believed"},
      {Summed(Head("0", "5000")), "larger than is believed"},
      {Summed(Head("1048576", "0")), "line 2: is no JSON string"},
      {Summed(Head("2", "0") + string), "line 3: is no JSON string"},
      {Summed(Head("1", "0") + "\"\"\n"), "line 2: a name is empty"},
      {Summed(Head("1", "0") + "\"" + std::string(4097, 'x') + "\"\n"), "line 2: a name is empty or longer"},
      {Summed(Head("1", "1") + string + "[1]\n"), "line 3: is no JSON object"},
      {Summed(Head("1", "1") + string + "{}\n"), "line 3: is no sequence"},
      {Summed(Head("1", "1") + string + Sequence("0,2,0,0,0")), "line 3: a launch names"},
      {Summed(Head("1", "1") + string + Sequence("3,0,0,0,0")), "line 3: a launch names"},
      {Summed(Head("1", "1") + string + Sequence("0,-1,0,0,0")), "line 3: a launch names"},
      {Summed(Head("1", "1") + string + Sequence("0,1,1")), "line 3: ends in the middle"},
      {Summed(Head("1", "0") + string + string), "line 3: has lines too many"},
      {Summed(Head("0", "1") + std::string(5000, '[') + "\n"), "line 2: is no JSON object"},
  };
  for (const auto& [text, says] : cases) {
    const std::string refusal = Refusal(text);
    EXPECT_NE(refusal.find(says), std::string::npos) << says << " <- " << refusal;
    EXPECT_EQ(refusal.find('\n'), std::string::npos);
  }
}

TEST(LearnedGraphsReader, MoreLaunchesThanABoundAreRefused) {
  std::string launches = "0,0,0,0,0";
  for (size_t i = 0; i < trace::kMaxSequenceLaunches; ++i) launches += ",0,0,0,0,0";
  EXPECT_NE(Refusal(Summed(Head("0", "1") + Sequence(launches))).find("more launches"), std::string::npos);
}

}  // namespace
}  // namespace teller::ingest
