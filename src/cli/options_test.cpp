#include "cli/options.hpp"

#include <gtest/gtest.h>

namespace teller::cli {
namespace {

Parsed Parse(std::vector<const char*> args) {
  args.insert(args.begin(), "teller");
  return ParseArguments(static_cast<int>(args.size()), args.data());
}

TEST(ParseArguments, ReadsDiagnose) {
  const Parsed parsed = Parse({"diagnose", "run", "more", "--logs", "a.log", "--logs", "b.log", "--format", "json",
                               "--false-alarms", "0.05", "--fail-on-finding", "--threads", "2", "-o", "out"});
  ASSERT_TRUE(parsed.command) << parsed.error;
  EXPECT_EQ(parsed.command->common.paths, (std::vector<std::string>{"run", "more"}));
  EXPECT_EQ(parsed.command->common.logs, (std::vector<std::string>{"a.log", "b.log"}));
  EXPECT_EQ(parsed.command->common.threads, 2u);
  EXPECT_EQ(parsed.command->common.output, "out");
  const auto& what = std::get<DiagnoseOptions>(parsed.command->what);
  EXPECT_EQ(what.format, "json");
  EXPECT_EQ(what.false_alarms, 0.05);
  EXPECT_TRUE(what.fail_on_finding);
}

TEST(ParseArguments, TakesPathsAfterTheLogsOption) {
  const Parsed parsed = Parse({"diagnose", "--logs", "a.log", "run"});
  ASSERT_TRUE(parsed.command) << parsed.error;
  EXPECT_EQ(parsed.command->common.paths, std::vector<std::string>{"run"});
}

TEST(ParseArguments, ReadsTree) {
  const Parsed parsed = Parse({"tree", "t.json", "--step", "4", "--rank", "1", "--depth", "3"});
  ASSERT_TRUE(parsed.command) << parsed.error;
  const auto& what = std::get<TreeOptions>(parsed.command->what);
  EXPECT_EQ(what.step, 4u);
  EXPECT_EQ(what.rank, 1);
  EXPECT_EQ(what.depth, 3u);
}

TEST(ParseArguments, ReadsTpe) {
  const Parsed train = Parse({"tpe", "train", "a", "b", "--vocab", "300", "--extend", "old", "-o", "new"});
  ASSERT_TRUE(train.command) << train.error;
  EXPECT_EQ(train.command->common.paths, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(train.command->common.output, "new");
  EXPECT_EQ(std::get<TpeTrainOptions>(train.command->what).merges, 300u);
  EXPECT_EQ(std::get<TpeTrainOptions>(train.command->what).extend, "old");
  const Parsed encode = Parse({"tpe", "encode", "run", "--vocab", "v", "--step", "4", "--json"});
  ASSERT_TRUE(encode.command) << encode.error;
  EXPECT_EQ(std::get<TpeEncodeOptions>(encode.command->what).vocabulary, "v");
  EXPECT_EQ(std::get<TpeEncodeOptions>(encode.command->what).step, 4u);
  const Parsed sweep = Parse({"tpe", "sweep", "a", "b", "--vocab", "0,16", "--test", "c", "d"});
  ASSERT_TRUE(sweep.command) << sweep.error;
  EXPECT_EQ(std::get<TpeSweepOptions>(sweep.command->what).merges, (std::vector<uint32_t>{0, 16}));
  EXPECT_EQ(std::get<TpeSweepOptions>(sweep.command->what).test, (std::vector<std::string>{"c", "d"}));
  EXPECT_TRUE(std::holds_alternative<TpeDecodeOptions>(Parse({"tpe", "decode", "-"}).command->what));
  EXPECT_TRUE(std::holds_alternative<TpeStatsOptions>(Parse({"tpe", "stats", "a"}).command->what));
}

TEST(ParseArguments, WrongArgumentsAreOneLine) {
  for (const std::vector<const char*>& args : {std::vector<const char*>{},
                                               {"nonsense"},
                                               {"diagnose"},
                                               {"diagnose", "x", "--format", "xml"},
                                               {"diagnose", "x", "--false-alarms", "2"},
                                               {"diagnose", "x", "--false-alarms", "nan"},
                                               {"diagnose", "x", "--false-alarms", "0"},
                                               {"tree", "x", "--step", "abc"},
                                               {"export", "x", "--to", "nothing"},
                                               {"tpe"},
                                               {"tpe", "nonsense"},
                                               {"tpe", "encode"},
                                               {"tpe", "train", "x", "--vocab", "-1"},
                                               {"tpe", "sweep", "x", "--vocab", "a,b"},
                                               {"diagnose", "x", "--unknown"}}) {
    const Parsed parsed = Parse(args);
    EXPECT_FALSE(parsed.command);
    EXPECT_FALSE(parsed.error.empty());
    EXPECT_EQ(parsed.error.find('\n'), std::string::npos) << parsed.error;
  }
}

TEST(ParseArguments, LogsAloneAreEnough) {
  const Parsed parsed = Parse({"diagnose", "--logs", "a.log"});
  ASSERT_TRUE(parsed.command) << parsed.error;
  EXPECT_TRUE(parsed.command->common.paths.empty());
}

TEST(ParseArguments, SaysWhichWordIsUnknown) {
  EXPECT_NE(Parse({"frob", "x"}).error.find("unknown command \"frob\""), std::string::npos);
  EXPECT_NE(Parse({"--frob"}).error.find("unknown option \"--frob\""), std::string::npos);
  EXPECT_NE(Parse({"tree", "x", "--frob"}).error.find("--frob"), std::string::npos);
}

TEST(ParseArguments, SaysTheRangeReadably) {
  for (const char* value : {"nan", "-nan", "inf", "0", "-1", "0.51", "x"}) {
    const std::string error = Parse({"diagnose", "x", "--false-alarms", value}).error;
    EXPECT_NE(error.find("more than 0 and at most 0.5"), std::string::npos) << value << ": " << error;
  }
}

TEST(ParseArguments, TakesOnlyDecimalNumbers) {
  for (const char* value : {"0x1", "0x0.8", "+1", "1_0", " 1", "1 ", ""}) {
    EXPECT_FALSE(Parse({"lab", "simulate", "--engine", "vllm", "-o", "x", "--magnitude", value}).command) << value;
    EXPECT_FALSE(Parse({"lab", "retime", "run", "--fault", "pause", "--scale", value}).command) << value;
  }
  for (const char* value : {"0", "1", "0.5", "1e-3"})
    EXPECT_TRUE(Parse({"lab", "simulate", "--engine", "vllm", "-o", "x", "--magnitude", value}).command) << value;
  EXPECT_FALSE(Parse({"diagnose", "run", "--false-alarms", "0x0.1"}).command);
}

TEST(ParseArguments, HelpAndVersionAreNoErrors) {
  EXPECT_NE(Parse({"--help"}).text.find("diagnose"), std::string::npos);
  EXPECT_NE(Parse({"diagnose", "--help"}).text.find("--fail-on-finding"), std::string::npos);
  EXPECT_EQ(Parse({"--version"}).text.rfind("teller ", 0), 0u);
}

}  // namespace
}  // namespace teller::cli
