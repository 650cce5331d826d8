#include "engine/structures.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "engine/run_path.hpp"
#include "engine/sweep.hpp"

namespace teller::engine {
namespace {

namespace fs = std::filesystem;

/// A folder of runs; each trace holds one call of its own name for every step, so that it can be told whose nodes are
/// where.
class Runs : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "teller-structures-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& call) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream file(root_ / path);
    file << R"({"schemaVersion":1,"traceEvents":[)";
    for (int i = 0; i < 4; ++i) {
      const int at = 1000 * i;
      file << (i > 0 ? "," : "") << R"({"ph":"X","cat":"cpu_op","name":")" << call << R"(","pid":1,"tid":1,"ts":)" << at
           << R"(,"dur":100})";
      file << R"(,{"ph":"X","cat":"user_annotation","name":"ProfilerStep#)" << i << R"(","pid":1,"tid":1,"ts":)" << at
           << R"(,"dur":900})";
    }
    file << "]}";
  }
  std::string At(const std::string& path) const { return root_.string() + "/" + path; }
  static std::set<std::string> NamesOf(const Structures& structures, const std::vector<bool>& is_test, bool test) {
    std::set<std::string> names;
    for (const Structures::Piece& piece : structures.pieces) {
      if (is_test[piece.source] != test) continue;
      for (const uint32_t row : structures.SymbolsOf(piece)) {
        if (structures.table.At(row).layer == encode::Layer::kOp) names.insert(structures.table.At(row).name);
      }
    }
    return names;
  }

  fs::path root_;
};

TEST_F(Runs, ATestRunIsNeverLearnedFromHoweverItIsNamed) {
  Write("t/ok/t.json", "aten::train");
  Write("t/ok2/t.json", "aten::test");
  fs::create_directory_symlink("t", root_ / "link");
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  using Paths = std::vector<std::string>;
  for (const std::string& test : Paths{"t/ok2", "t/ok2/", "./t/ok2", "t/../t//ok2", "t/ok2/t.json", "./t/ok2/t.json",
                                       At("t/ok2"), "link/ok2", "t/ok2/*.json"}) {
    for (const Paths& train :
         {Paths{"t/ok", "t/ok2"}, {"t"}, {"./t/"}, {"t/ok", "t/ok2/t.json"}, {"t/*"}, {"t", "t/ok2", "link/ok"}}) {
      const auto structures = ReadStructures({.paths = train, .test = {test}, .graphs = {}}, 1, nullptr);
      ASSERT_TRUE(structures) << structures.error().Text();
      std::string how;
      const auto is_test = SplitSources(*structures, {test}, how);
      EXPECT_EQ(NamesOf(*structures, is_test, true), (std::set<std::string>{"aten::test"})) << test << " " << train[0];
      EXPECT_EQ(NamesOf(*structures, is_test, false), (std::set<std::string>{"aten::train"}))
          << test << " " << train[0];
      EXPECT_EQ(structures->spans, 16u) << test << " " << train[0];
    }
  }
  // A test run that holds all that was to be learned from leaves nothing to learn.
  const auto all = ReadStructures({.paths = {"t/ok"}, .test = {"t"}, .graphs = {}}, 1, nullptr);
  ASSERT_TRUE(all);
  EXPECT_EQ(RunSweep(*all, {"t"}, {.merges = {1}}).error().code, base::Code::kNotFound);
  fs::current_path(before);
}

TEST_F(Runs, EveryFileIsReadOnce) {
  Write("t/a/t.json", "aten::a");
  Write("t/b/t.json", "aten::b");
  const auto once = ReadStructures({.paths = {At("t/a"), At("t/b")}, .test = {}, .graphs = {}}, 1, nullptr);
  ASSERT_TRUE(once);
  EXPECT_TRUE(once->skipped.empty());
  for (const std::vector<std::string>& paths : {std::vector<std::string>{At("t/a"), At("t/b"), At("t/a/")},
                                                {At("t/b"), At("t/b/./"), At("t/b/../a")},
                                                {At("t")},
                                                {At("t"), At("t/b")},
                                                {At("t/b/t.json"), At("t"), At("t/*")},
                                                {At("t/b"), At("t/b/t.json"), At("t/a")}}) {
    const auto read = ReadStructures({.paths = paths, .test = {}, .graphs = {}}, 1, nullptr);
    ASSERT_TRUE(read) << read.error().Text();
    EXPECT_EQ(read->sources.size(), 2u) << paths.back();
    EXPECT_EQ(read->symbols.size(), once->symbols.size()) << paths.back();
    EXPECT_EQ(read->spans, once->spans) << paths.back();
    EXPECT_FALSE(read->lost.size()) << paths.back();
  }
  const auto nested = ReadStructures({.paths = {At("t"), At("t/b")}, .test = {}, .graphs = {}}, 1, nullptr);
  ASSERT_EQ(nested->skipped.size(), 1u);
  EXPECT_EQ(nested->skipped[0].path, At("t/b/t.json"));
  EXPECT_EQ(nested->skipped[0].why, "already read as part of " + At("t"));
}

TEST_F(Runs, OneFileHasOneCanonicalPath) {
  Write("t/a/t.json", "aten::a");
  const std::string path = CanonicalPath(At("t/a"));
  EXPECT_EQ(CanonicalPath(At("t/a/")), path);
  EXPECT_EQ(CanonicalPath(At("t//./a/.")), path);
  EXPECT_EQ(CanonicalPath(At("t/a/../a")), path);
  EXPECT_NE(CanonicalPath(At("t/a/t.json")), path);
  EXPECT_EQ(CanonicalPath(At("none/")), CanonicalPath(At("none")));
  EXPECT_EQ(CanonicalPath("/"), "/");
  // A member of an archive behind a link.
  fs::create_symlink("a/t.json", root_ / "t" / "l.tar");
  EXPECT_EQ(CanonicalPath(At("t/l.tar!x/y.json")), path + "/t.json!x/y.json");
  EXPECT_EQ(PathInRun(At("t"), "a/t.json"), At("t/a/t.json"));
  EXPECT_EQ(PathInRun(At("t/"), "a/t.json"), At("t/a/t.json"));
  EXPECT_EQ(PathInRun(At("t/l.tar"), At("t/l.tar!x.json")), At("t/l.tar!x.json"));
}

}  // namespace
}  // namespace teller::engine
