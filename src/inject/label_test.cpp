#include "inject/label.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "inject/check.hpp"

namespace teller::inject {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kBegin = 1'768'469'400'000'000'000;

Json GoodLabel() {
  return {{"schema", "teller.label/1"},
          {"is_fault", true},
          {"fault_class", "RUNTIME_PAUSE"},
          {"accept_classes", {"CPU_STARVED"}},
          {"fault_kind", "sigstop"},
          {"stack", "vllm"},
          {"world_size", 2},
          {"t_start_ns", kBegin + 1'000'000},
          {"t_end_ns", kBegin + 5'000'000},
          {"culprit", {{"rank", 1}, {"process", "Worker"}, {"layer", "process"}, {"operator", nullptr}}},
          {"victims", {0, "APIServer"}},
          {"intervals_ns", {{kBegin + 1'000'000, kBegin + 2'000'000}}},
          {"visible_in", {"trace"}}};
}

/// A case with one small trace.
class CheckTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("teller_case_" + std::to_string(getpid()));
    folder_ = root_ / "case";
    fs::remove_all(root_);
    fs::create_directories(folder_ / "traces");
    std::ofstream(folder_ / "traces/rank0.json")
        << R"({"schemaVersion":1,"baseTimeNanoseconds":)" << kBegin
        << R"(,"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":0,"dur":9000,"args":{}}]})";
  }
  void TearDown() override { fs::remove_all(root_); }

  std::vector<std::string> Problems(const Json& label) {
    std::ofstream(folder_ / "label.json") << label.dump();
    return CheckCase(folder_.string(), 1);
  }
  void ExpectOne(const Json& label, const std::string& words) {
    const auto problems = Problems(label);
    ASSERT_EQ(problems.size(), 1U) << label.dump();
    EXPECT_NE(problems[0].find(words), std::string::npos) << problems[0];
    EXPECT_EQ(problems[0].find('\n'), std::string::npos);
  }

  fs::path root_;
  fs::path folder_;
};

TEST_F(CheckTest, WholeCaseHasNoProblem) {
  EXPECT_EQ(Problems(GoodLabel()), std::vector<std::string>());
}

TEST_F(CheckTest, EachDeviationIsOneLine) {
  const auto with = [](const char* key, const Json& value) {
    Json label = GoodLabel();
    label[key] = value;
    return label;
  };
  ExpectOne(with("t_start_ns", kBegin - 9'000'000'000), "outside the run");
  ExpectOne(with("t_end_ns", kBegin + 9'000'000'000), "outside the run");
  ExpectOne(with("fault_class", "GREMLINS"), "unknown class");
  ExpectOne(with("accept_classes", {"GREMLINS"}), "unknown class");
  ExpectOne(with("visible_in", {"spans"}), "missing");
  ExpectOne(with("visible_in", {"dreams"}), "unknown place");
  ExpectOne(with("culprit", {{"rank", 2}, {"layer", "process"}}), "rank 2");
  ExpectOne(with("accept_ranks", {5}), "rank 5");
  ExpectOne(with("victims", {-1}), "rank -1");
  ExpectOne(with("culprit", nullptr), "without a culprit");
  ExpectOne(with("schema", "teller.label/9"), "schema");
  ExpectOne(with("intervals_ns", {{kBegin, kBegin + 1}}), "outside the window");
  ExpectOne(with("intervals_ns", {{1}}), "no pair");
  ExpectOne(with("world_size", 1.5), "no whole number");
  Json control = GoodLabel();
  control["is_fault"] = false;
  control["fault_class"] = "NOT_A_FAULT";
  ExpectOne(control, "no fault");
  control["culprit"] = nullptr;
  EXPECT_EQ(Problems(control), std::vector<std::string>());
}

TEST_F(CheckTest, BrokenLabelsAndInputsAreSaid) {
  for (const char* text :
       {"", "[]", "{", "null", "\xff\xfe", R"({"schema":1,"is_fault":"yes","victims":{},"culprit":3})"}) {
    std::ofstream(folder_ / "label.json") << text;
    EXPECT_FALSE(CheckCase(folder_.string(), 1).empty()) << text;
  }
  fs::remove(folder_ / "label.json");
  EXPECT_EQ(CheckCase(folder_.string(), 1),
            std::vector<std::string>({(folder_ / "label.json").string() + ": there is no label"}));
  std::ofstream(folder_ / "traces/rank0.json") << "";
  EXPECT_FALSE(Problems(GoodLabel()).empty());
  fs::remove_all(folder_ / "traces");
  EXPECT_GE(Problems(GoodLabel()).size(), 2U);
}

TEST_F(CheckTest, CasesAreFoundBelowAFolder) {
  Problems(GoodLabel());
  const auto cases = FindCases({root_.string()});
  ASSERT_TRUE(cases);
  EXPECT_EQ(*cases, std::vector<std::string>({folder_.string()}));
  EXPECT_FALSE(FindCases({(folder_ / "traces").string()}));
  EXPECT_FALSE(FindCases({(folder_ / "nothing").string()}));
  EXPECT_FALSE(FindCases({root_.string(), (folder_ / "traces").string()}));
}

TEST_F(CheckTest, ACaseIsFoundOnceAndDraftsAreNone) {
  Problems(GoodLabel());
  fs::create_directories(root_ / ".case.partial-7");
  fs::create_directories(root_ / "set.part" / "case-00001");
  for (const char* draft : {".case.partial-7", "set.part/case-00001"})
    std::ofstream(root_ / draft / "label.json") << GoodLabel().dump();
  fs::create_directory_symlink(folder_, root_ / "again");
  const auto cases = FindCases({root_.string(), (root_ / "again").string(), root_.string()});
  ASSERT_TRUE(cases);
  EXPECT_EQ(*cases, std::vector<std::string>({folder_.string()}));
}

TEST_F(CheckTest, EmptyTextsAreNone) {
  for (const char* key : {"process", "operator", "module", "function", "log_record"}) {
    Json label = GoodLabel();
    label["culprit"][key] = key == std::string("module") ? " \n" : "";
    ExpectOne(label, std::string("\"") + key + "\" holds an empty text");
  }
  for (const char* key : {"fault_kind", "stack", "version"}) {
    Json label = GoodLabel();
    label[key] = "";
    ExpectOne(label, std::string("\"") + key + "\" holds an empty text");
  }
  for (const char* key : {"accept_operators", "victims"}) {
    Json label = GoodLabel();
    label[key] = {"mm", ""};
    ExpectOne(label, std::string("\"") + key + "\" holds an empty text");
  }
  Json label = GoodLabel();
  label["visible_in"] = Json::array();
  ExpectOne(label, "has no place");
  label["visible_in"] = nullptr;
  label["culprit"]["log_record"] = nullptr;
  EXPECT_EQ(Problems(label), std::vector<std::string>());
}

TEST_F(CheckTest, StepsAreNumbersAndEveryLineNamesItsFile) {
  for (const char* steps : {"[-1]", "[\"x\"]", "[1.5]", "[5000000000]", "[{\"annotation\": \"x\"}]",
                            "[{\"index\": 1, \"ranks\": [[1]]}]"}) {
    Json label = GoodLabel();
    label["abnormal_steps"] = Json::parse(steps);
    ExpectOne(label, "\"abnormal_steps\" has a step");
    EXPECT_EQ(Problems(label)[0].find((folder_ / "label.json").string() + ": "), 0U);
  }
  Json label = GoodLabel();
  label["abnormal_steps"] = {3, {{"index", 4}, {"ranks", {{kBegin, kBegin + 1}, {kBegin, nullptr}}}}};
  EXPECT_EQ(Problems(label), std::vector<std::string>());
  std::ofstream(folder_ / "label.json") << std::string(3'000'000, '[');
  EXPECT_EQ(CheckCase(folder_.string(), 1),
            std::vector<std::string>({(folder_ / "label.json").string() + ": is nested more than 64 deep"}));
}

TEST(Check, SharedCasesAreWhole) {
  const std::string root = "../shared/data/lab";
  if (!fs::is_directory(root)) {
    GTEST_SKIP() << "real files are not at ../shared/data";
  }
  const auto cases = FindCases({root});
  ASSERT_TRUE(cases);
  EXPECT_GE(cases->size(), 30U);
  for (const std::string& folder : *cases) EXPECT_EQ(CheckCase(folder, 1), std::vector<std::string>()) << folder;
}

}  // namespace
}  // namespace teller::inject
