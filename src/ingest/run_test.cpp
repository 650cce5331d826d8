#include "ingest/run.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <tuple>

#include "ingest/kineto/kineto_test_support.hpp"

namespace teller::ingest {
namespace {

const std::string kTrace = "[" + Event("a", "1", "1") + "]";

base::Result<trace::Store> Read(std::vector<std::string> paths, std::vector<std::string> logs = {}) {
  return ReadRun({.paths = std::move(paths), .logs = std::move(logs)}, {.threads = 2});
}

const trace::File* FileOf(const trace::Store& store, std::string_view path) {
  for (const auto& file : store.files) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

TEST(Run, KindsAreFoundByContent) {
  const TestFolder folder;
  folder.Write("traces/no_extension", kTrace);
  folder.Write("server.log", "INFO 07-01 10:00:00 [core.py:1] started\n");
  folder.Write("log_arrival_ns.txt", "1795984842644798277\n");
  folder.Write("spans.jsonl", "{\"resourceSpans\":[]}\n{\"resourceSpans\":[]}\n");
  folder.Write("host.jsonl", "{\"t_ns\":1796040000000000000,\"cpu_s\":{\"Worker\":1.5}}\n");
  folder.Write("metrics.txt", "# HELP a b\n# TYPE a gauge\na 1\n");
  folder.Write("label.json", "{\"is_fault\": true}");
  folder.Write("README.md", "# run\n");
  folder.Write("db.sqlite", std::string("SQLite format 3\0abc", 19));
  folder.Write("bin", std::string(100, '\x01'));
  folder.Write(".hidden/trace.json", kTrace);
  auto store = Read({folder.path()});
  ASSERT_TRUE(store.has_value()) << store.error().Text();
  EXPECT_EQ(FileOf(*store, "traces/no_extension")->kind, "kineto");
  EXPECT_EQ(FileOf(*store, "server.log")->kind, "log");
  EXPECT_EQ(FileOf(*store, "log_arrival_ns.txt")->kind, "log-arrival");
  EXPECT_EQ(FileOf(*store, "spans.jsonl")->kind, "otlp");
  EXPECT_EQ(FileOf(*store, "metrics.txt")->kind, "prometheus");
  EXPECT_EQ(FileOf(*store, "host.jsonl")->kind, "host-counters");
  for (const char* other : {"label.json", "README.md", "db.sqlite", "bin"}) {
    EXPECT_EQ(FileOf(*store, other)->kind, "other") << other;
    EXPECT_NE(FileOf(*store, other)->note, "") << other;
  }
  EXPECT_EQ(FileOf(*store, ".hidden/trace.json"), nullptr);
  EXPECT_EQ(store->diagnostics.Count("input.not_used"), 4u);
  EXPECT_FALSE(store->diagnostics.LostInput());
}

TEST(Run, ALogBehindNulsIsALog) {
  const TestFolder folder;
  const std::string line = "INFO 07-01 10:00:00 [core.py:1] started\n";
  folder.Write("front.log", std::string(300'000, '\0') + line);
  folder.Write("middle.log", line + std::string(50'000, '\0') + line);
  auto store = Read({folder.path()});
  ASSERT_TRUE(store.has_value()) << store.error().Text();
  EXPECT_EQ(FileOf(*store, "front.log")->kind, "log");
  EXPECT_EQ(FileOf(*store, "middle.log")->kind, "log");
}

TEST(Run, JsonLinesAreALogWhenTheyHaveTextAndTime) {
  const TestFolder folder;
  folder.Write("a.jsonl",
               "{\"time\":\"2026-11-30T12:00:00Z\",\"message\":\"started\"}\n"
               "{\"time\":\"2026-11-30T12:00:01Z\",\"message\":\"loaded\"}\n");
  folder.Write("b.json", "{\"ts\":1796040000.25,\"level\":\"info\",\"msg\":\"started\"}\nplain text\n");
  folder.Write("c.log", "{\"timestamp\":\"2026-11-30T12:00:00Z\",\"level\":\"INFO\",\"fields\":{\"message\":\"x\"}}");
  folder.Write("d.jsonl", "{\"log\":\"x\\n\",\"stream\":\"stdout\",\"time\":\"2026-11-30T12:00:00Z\"}\n");
  const std::vector<std::string> others = {"spans.jsonl", "host.jsonl", "requests.jsonl", "events.jsonl", "one.json"};
  folder.Write(others[0], "{\"resourceSpans\":[]}\n{\"resourceSpans\":[]}\n");
  folder.Write(others[1], "{\"t_ns\":1796040000000000000,\"cpu\":1.5}\n{\"t_ns\":1796040000000000001,\"cpu\":2}\n");
  folder.Write(others[2], "{\"id\":1,\"time\":1.5,\"text\":\"a prompt\",\"status\":200}\n{\"id\":2}\n");
  folder.Write(others[3], "{\"ts\":1,\"event\":\"arrived\"}\n{\"ts\":2,\"event\":\"left\"}\n");
  folder.Write(others[4], "{\n\"time\": \"2026\",\n\"message\": \"x\"\n}\n");
  auto store = Read({folder.path()});
  ASSERT_TRUE(store.has_value()) << store.error().Text();
  for (const char* name : {"a.jsonl", "b.json", "c.log", "d.jsonl"})
    EXPECT_EQ(FileOf(*store, name)->kind, "log") << name;
  EXPECT_EQ(FileOf(*store, others[0])->kind, "otlp");
  EXPECT_EQ(FileOf(*store, others[1])->kind, "host-counters");
  for (size_t i = 2; i < others.size(); ++i) EXPECT_EQ(FileOf(*store, others[i])->kind, "other") << others[i];
  ASSERT_GE(store->logs.size(), 2u);
  EXPECT_EQ(store->logs[0].message, "started");
}

TEST(Run, WhatTheRunsOwnFolderIsCalledIsNoRank) {
  const TestFolder folder;
  folder.Write("tp-83/server.log", "INFO 07-01 10:00:00 [core.py:1] started\n");
  folder.Write("tp-83/rank2/server.log", "INFO 07-01 10:00:00 [core.py:1] started\n");
  auto store = Read({folder.path() + "/tp-83"});
  ASSERT_TRUE(store.has_value());
  EXPECT_FALSE(FileOf(*store, "server.log")->rank);
  EXPECT_EQ(FileOf(*store, "rank2/server.log")->rank, 2);
}

TEST(Run, AnExtensionRefusesOnlyWhatDoesNotLookLikeALog) {
  const TestFolder folder;
  const std::string line = "INFO 07-01 10:00:00 [core.py:1] started\n";
  folder.Write("a.log", line);
  folder.Write("vllm.cfg", line + line);
  folder.Write("out.csv", "2026-11-30 12:00:00,123 INFO a: x\n" + line);
  folder.Write("notes.md", "# What happened\nThe server said:\n\n    " + line + "and nothing else.\n");
  folder.Write("serve.py", "import os\nprint('x')\n");
  folder.Write("data.csv", "2026-11-30 12:00:00,1,2\n2026-11-30 12:00:01,1,2\n");
  auto store = Read({folder.path()});
  ASSERT_TRUE(store.has_value());
  EXPECT_EQ(FileOf(*store, "vllm.cfg")->kind, "log");
  EXPECT_EQ(FileOf(*store, "out.csv")->kind, "log");
  for (const char* name : {"notes.md", "serve.py", "data.csv"}) EXPECT_EQ(FileOf(*store, name)->kind, "other") << name;
}

TEST(Run, ArrivalTimesGoToTheLogWithAsManyLines) {
  const std::string stamp = "INFO 07-01 10:00:00 [core.py:1] x\n";
  const std::string times = "1795984842644798277\n1795984842644798278\n1795984842644798279\n";
  for (const auto& [server, client, owner] : std::vector<std::tuple<int, int, std::string>>{
           {9, 3, "client.log"}, {3, 9, "server.log"}, {4, 9, "server.log"}, {3, 3, ""}, {9, 9, ""}}) {
    const TestFolder folder;
    std::string text;
    for (int i = 0; i < server; ++i) text += stamp;
    folder.Write("server.log", text);
    text.clear();
    for (int i = 0; i < client; ++i) text += stamp;
    folder.Write("client.log", text);
    folder.Write("times.txt", times);
    auto store = Read({folder.path()});
    ASSERT_TRUE(store.has_value());
    EXPECT_EQ(store->diagnostics.Count("input.arrival_without_log"), owner.empty() ? 1u : 0u);
    for (const auto& record : store->logs) {
      if (record.basis != trace::TimeBasis::kArrival) continue;
      EXPECT_EQ(store->files[record.file.value()].path, owner);
    }
    const bool any = std::any_of(store->logs.begin(), store->logs.end(),
                                 [](const auto& r) { return r.basis == trace::TimeBasis::kArrival; });
    EXPECT_EQ(any, !owner.empty());
  }
}

TEST(Run, AFolderWithNeitherTracesNorLogsIsAnError) {
  const TestFolder folder;
  auto empty = Read({folder.path()});
  ASSERT_FALSE(empty.has_value());
  EXPECT_EQ(empty.error().code, base::Code::kNotFound);
  EXPECT_NE(empty.error().Text().find("expected"), std::string::npos);
  folder.Write("x.json", "{\"a\": 1}");
  EXPECT_FALSE(Read({folder.path()}).has_value());
}

TEST(Run, WhatIsNoTraceAndNothingElseIsAnErrorOfOneLine) {
  const TestFolder folder;
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{{"index.json", "[{\"file\": \"a\"}]"},
                                                        {"other.json", "{\"a\": [1, 2]}"},
                                                        {"long.json", "{\"a\": \"" + std::string(200'000, 'x') + "\"}"},
                                                        {"empty.log", ""},
                                                        {"readme.md", "hello"},
                                                        {"s.sqlite", std::string("SQLite format 3\0", 16)}}) {
    auto store = Read({folder.Write(name, text)});
    ASSERT_FALSE(store.has_value()) << name;
    EXPECT_EQ(store.error().Text().find('\n'), std::string::npos);
    EXPECT_EQ(store.error().code, base::Code::kNotFound);
  }
}

TEST(Run, WhatIsDamagedIsToldFromWhatHoldsNoTrace) {
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{{"empty.json", ""},
                                                        {"cut.json", "{\"schemaVersion\": 1, \"traceEv"},
                                                        {"long.json", "{\"a\": \"" + std::string(200'000, 'x')},
                                                        {"broken.json", "{\"a\" oops"},
                                                        {"head.json.gz", std::string("\x1f\x8b\x08\0\0\0", 6)}}) {
    const TestFolder folder;
    folder.Write("readme.md", "hello");
    folder.Write(name, text);
    auto alone = Read({folder.path()});
    ASSERT_FALSE(alone.has_value()) << name;
    EXPECT_EQ(alone.error().code, base::Code::kBadFormat) << name;
    EXPECT_EQ(alone.error().Text().find(name + ": not usable: "), 0u) << alone.error().Text();
    folder.Write("trace.json", kTrace);
    auto beside = Read({folder.path()});
    ASSERT_TRUE(beside.has_value()) << name;
    EXPECT_TRUE(beside->diagnostics.LostInput()) << name;
  }
}

TEST(Run, MissingFilesAreAnErrorAloneAndADiagnosticBesideOthers) {
  const TestFolder folder;
  auto alone = Read({folder.path() + "/none.json"});
  ASSERT_FALSE(alone.has_value());
  EXPECT_EQ(alone.error().code, base::Code::kNotFound);
  auto beside = Read({folder.path() + "/none.json", folder.Write("a.json", kTrace)});
  ASSERT_TRUE(beside.has_value());
  EXPECT_EQ(beside->diagnostics.Count("input.missing"), 1u);
  EXPECT_TRUE(beside->diagnostics.LostInput());
}

TEST(Run, UnreadableFilesAreReported) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const TestFolder folder;
  const auto path = folder.Write("a.json", kTrace);
  std::filesystem::permissions(path, std::filesystem::perms::none);
  auto store = Read({path});
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, base::Code::kUnreadable);
}

TEST(Run, AnEmptyTraceFileIsALossAnEmptyLogIsNone) {
  const TestFolder folder;
  folder.Write("a.json", kTrace);
  folder.Write("stderr.log", "");
  auto fine = Read({folder.path()});
  ASSERT_TRUE(fine.has_value());
  EXPECT_FALSE(fine->diagnostics.LostInput());
  folder.Write("rank1.json", "");
  auto loss = Read({folder.path()});
  ASSERT_TRUE(loss.has_value());
  EXPECT_EQ(loss->diagnostics.Count("input.empty_file"), 1u);
  EXPECT_TRUE(loss->diagnostics.LostInput());
}

TEST(Run, PatternsAreExpandedAndFilesListedOnce) {
  const TestFolder folder;
  folder.Write("rank0.json", kTrace);
  folder.Write("rank1.json", kTrace);
  auto store = Read({folder.path() + "/rank*.json", folder.path() + "/rank0.json", folder.path()});
  ASSERT_TRUE(store.has_value());
  EXPECT_EQ(store->files.size(), 2u);
  EXPECT_EQ(store->spans.size(), 2u);
}

TEST(Run, TheOrderOfTheArgumentsDoesNotMatter) {
  const TestFolder folder;
  const auto a = folder.Write("a.json", kTrace);
  const auto b = folder.Write("b.json", kTrace);
  const auto log = folder.Write("c.log", "hello\n");
  for (const auto& paths : {std::vector<std::string>{a, b, log}, {log, b, a}, {b, folder.path(), a, a}}) {
    auto store = Read(paths);
    ASSERT_TRUE(store.has_value());
    ASSERT_EQ(store->files.size(), 3u);
    EXPECT_EQ(store->files[0].path, a);
    EXPECT_EQ(store->files[1].path, b);
    EXPECT_EQ(store->files[2].path, log);
  }
}

TEST(Run, PipesAreNeverOpened) {
  const TestFolder folder;
  const auto pipe = folder.path() + "/x.log";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  using Names = std::vector<std::string>;
  for (const auto& [paths, logs] :
       std::vector<std::pair<Names, Names>>{{{pipe}, {}}, {{}, {pipe}}, {{folder.path()}, {}}}) {
    auto alone = Read(paths, logs);
    ASSERT_FALSE(alone.has_value());
    EXPECT_NE(alone.error().Text().find("x.log: is a pipe"), std::string::npos) << alone.error().Text();
  }
  const auto trace = folder.Write("a.json", kTrace);
  auto found = Read({folder.path()});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->diagnostics.Count("input.not_used"), 1u);
  EXPECT_FALSE(found->diagnostics.LostInput());
  auto named = Read({trace, pipe});
  ASSERT_TRUE(named.has_value());
  EXPECT_TRUE(named->diagnostics.LostInput());
}

TEST(Run, LinksThatLeadNowhereOrInACircleAreLosses) {
  const TestFolder folder;
  folder.Write("run/a.json", kTrace);
  folder.Write("run/sub/b.json", kTrace);
  folder.Write("elsewhere/c.json", kTrace);
  const std::filesystem::path run = folder.path() + "/run";
  std::filesystem::create_directory_symlink("sub", run / "latest");
  auto fine = Read({run.string()});
  ASSERT_TRUE(fine.has_value());
  EXPECT_EQ(fine->files.size(), 2u);
  EXPECT_EQ(fine->diagnostics.Count("input.link_inside"), 1u);
  EXPECT_FALSE(fine->diagnostics.LostInput());
  std::filesystem::create_symlink("nowhere.json", run / "gone.json");
  std::filesystem::create_symlink("self", run / "self");
  std::filesystem::create_directory_symlink("..", run / "sub" / "up");
  std::filesystem::create_directory_symlink("../elsewhere", run / "other");
  auto lost = Read({run.string()});
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->files.size(), 2u);
  EXPECT_EQ(lost->diagnostics.Count("input.broken_link"), 3u);
  EXPECT_EQ(lost->diagnostics.Count("input.linked_folder"), 1u);
  EXPECT_TRUE(lost->diagnostics.LostInput());
}

TEST(Run, TheOnlyFileOfAFolderSaysWhyItIsNotUsable) {
  const TestFolder folder;
  folder.Write("s.db", std::string("SQLite format 3\0", 16));
  auto store = Read({folder.path()});
  ASSERT_FALSE(store.has_value());
  EXPECT_NE(store.error().Text().find("s.db: not usable: "), std::string::npos) << store.error().Text();
}

TEST(Run, NamedLogsAreLogsWhateverTheyLookLike) {
  const TestFolder folder;
  const auto log = folder.Write("notes.md", "something\n");
  auto store = Read({}, {log});
  ASSERT_TRUE(store.has_value());
  EXPECT_EQ(store->files[0].kind, "log");
  EXPECT_EQ(store->logs.size(), 1u);
}

TEST(Run, RanksOfLogsComeFromTheirPlace) {
  const TestFolder folder;
  folder.Write("logs/rank3.log", "hello\n");
  folder.Write("torchrun/5/stdout.log", "hello\n");
  auto store = Read({folder.path()});
  ASSERT_TRUE(store.has_value());
  EXPECT_EQ(FileOf(*store, "logs/rank3.log")->rank, 3);
  EXPECT_EQ(FileOf(*store, "torchrun/5/stdout.log")->rank, 5);
}

TEST(Run, ATraceMayHaveALongHead) {
  const TestFolder folder;
  const auto path = folder.Write("a.json", "{\"metadata\":{\"x\":\"" + std::string(300'000, 'x') +
                                               "\"},\"traceEvents\":[" + Event("a", "1", "1") + "]}");
  auto store = Read({path});
  ASSERT_TRUE(store.has_value()) << store.error().Text();
  EXPECT_EQ(store->spans.size(), 1u);
}

TEST(Run, StopsWhenCancelled) {
  class Stop : public base::Progress {
    void Update(std::string_view, uint64_t, uint64_t) override { Cancel(); }
  };
  const TestFolder folder;
  Stop stop;
  RunOptions options;
  options.progress = &stop;
  auto store = ReadRun({.paths = {folder.Write("a.json", kTrace)}, .logs = {}}, options);
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, base::Code::kCancelled);
}

}  // namespace
}  // namespace teller::ingest
