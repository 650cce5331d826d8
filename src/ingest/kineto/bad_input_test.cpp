// Every kind of bad input: a counted, located diagnostic, or an error of one line; never a crash, never silence.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "ingest/kineto/kineto_test_support.hpp"

namespace teller::ingest {
namespace {

std::string Many(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) {
    if (i > 0) text += ",\n";
    text += Event("op" + std::to_string(i), std::to_string(i) + ".25", "1");
  }
  return text;
}

uint64_t Only(const trace::Store& store, std::string_view code) {
  uint64_t other = 0;
  for (const auto& d : store.diagnostics.All()) {
    if (d.kind->severity >= base::Severity::kDataLoss && d.kind->code != code) ++other;
  }
  EXPECT_EQ(other, 0u);
  return store.diagnostics.Count(code);
}

TEST(BadTrace, CutInMidEventKeepsAllWholeEvents) {
  const std::string whole = "{\"schemaVersion\":1,\"traceEvents\":[" + Many(10) + "]}";
  const std::string last = R"({"ph":"X","cat":"cpu_op","name":"op9)";
  const auto store = ReadText(whole.substr(0, whole.find(last) + 20));
  EXPECT_EQ(store.spans.size(), 9u);
  EXPECT_EQ(Only(store, "trace.truncated"), 1u);
  EXPECT_EQ(store.files[0].dropped, 1u);
}

TEST(BadTrace, CutAnywhereNeverCrashesAndNeverLosesWholeEvents) {
  const std::string whole =
      "{\"a\":[\"x\"],\"schemaVersion\":1,\"deviceProperties\":[],\"traceEvents\":[" + Many(4) + "],\"b\":{\"c\":1}}";
  for (size_t n = whole.find("traceEvents") + 14; n < whole.size(); ++n) {
    SCOPED_TRACE(n);
    const auto store = ReadText(whole.substr(0, n));
    const std::string read = whole.substr(0, n);
    size_t events = 0;
    for (size_t at = read.find("\"dur\":1}"); at != std::string::npos; at = read.find("\"dur\":1}", at + 1)) ++events;
    ASSERT_EQ(store.spans.size(), events);
    ASSERT_TRUE(store.diagnostics.LostInput());
  }
}

TEST(BadTrace, TruncatedGzipIsReadUpToTheCut) {
  const std::string packed = Gzip("[" + Many(20000) + "]");
  const TestFolder folder;
  auto store = ReadRun({.paths = {folder.Write("t.json.gz", packed.substr(0, packed.size() / 2))}, .logs = {}}, {});
  ASSERT_TRUE(store.has_value());
  EXPECT_GT(store->spans.size(), 1000u);
  EXPECT_LT(store->spans.size(), 20000u);
  EXPECT_EQ(store->diagnostics.Count("trace.damaged_gzip"), 1u);
  EXPECT_EQ(store->diagnostics.Count("trace.truncated"), 1u);
}

TEST(BadTrace, SeveralGzipMembersAreOneFile) {
  const TestFolder folder;
  const std::string text = "[" + Many(100) + "]";
  auto store = ReadRun(
      {.paths = {folder.Write("t.json.gz", Gzip(text.substr(0, 777)) + Gzip(text.substr(777)))}, .logs = {}}, {});
  ASSERT_TRUE(store.has_value());
  EXPECT_EQ(store->spans.size(), 100u);
  EXPECT_FALSE(store->diagnostics.LostInput());
}

TEST(BadTrace, WrongTypesAreCountedAndTheRestIsRead) {
  const auto store = ReadText(
      "[" + Event("good", "1", "1") + "," + Event("a", "\"12\"", "1") + "," + Event("b", "null", "1") + "," +
      Event("c", "{\"x\":1}", "1") + "," + Event("d", "2", "\"long\"") + "," + Event("e", "3", "[1]") +
      R"(,{"ph":"X","cat":7,"name":{"x":"y"},"pid":[1],"tid":null,"ts":4,"dur":1},)" +
      R"({"ph":5,"ts":1},{"name":"no phase"},{"ph":"X","name":"no ts"},{"ph":"X","name":"no dur","ts":5,"pid":1,"tid":1},)" +
      R"(17,"text",[1,2],null,true,)" + Event("last", "9", "1") + "]");
  EXPECT_EQ(store.diagnostics.Count("trace.bad_time"), 4u);
  EXPECT_EQ(store.diagnostics.Count("trace.bad_duration"), 3u);
  EXPECT_EQ(store.diagnostics.Count("trace.no_phase"), 2u);
  EXPECT_EQ(store.diagnostics.Count("trace.not_an_event"), 5u);
  EXPECT_GE(store.diagnostics.Count("trace.bad_field"), 2u);
  EXPECT_EQ(store.spans.size(), 6u);
  EXPECT_EQ(store.files[0].records_read, 17u);
  EXPECT_TRUE(store.diagnostics.LostInput());
}

TEST(BadTrace, DiagnosticsNameThePlace) {
  const std::string text = "[" + Event("good", "1", "1") + ",\n" + Event("bad", "1", "\"abc\"") + "]";
  const auto store = ReadText(text);
  for (const auto& d : store.diagnostics.All()) {
    if (d.kind->code != "trace.bad_duration") continue;
    ASSERT_EQ(d.places.size(), 1u);
    EXPECT_EQ(d.places[0], "byte " + std::to_string(text.rfind("{\"ph\"")) + ": \"dur\" is \"abc\"");
  }
}

TEST(BadTrace, NumbersThatAreNoneOrHuge) {
  const auto store = ReadText(
      "[" + Event("nan", "NaN", "1") + "," + Event("inf", "1", "Infinity") + "," + Event("negative", "2", "-5") + "," +
      Event("huge", "1e300", "1") + "," + Event("hugedur", "3", "99999999999999999999999999") +
      R"(,{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":4,"dur":1,"args":{"correlation":99999999999999999999999,"stream":1e400,"bytes":-9223372036854775809}}])");
  EXPECT_EQ(store.diagnostics.Count("trace.bad_time"), 1u);
  EXPECT_EQ(store.diagnostics.Count("trace.huge_time"), 1u);
  EXPECT_EQ(store.diagnostics.Count("trace.negative_duration"), 1u);
  EXPECT_EQ(store.diagnostics.Count("trace.bad_duration"), 2u);
  EXPECT_EQ(store.spans.size(), 4u);
  for (size_t i = 0; i < store.spans.size(); ++i) EXPECT_GE(store.spans.duration[i], 0);
}

int64_t Sum(const std::vector<trace::Nanos>& values) {
  __int128 sum = 0;
  for (const auto value : values) sum += value;
  EXPECT_LE(sum, __int128{INT64_MAX});
  return static_cast<int64_t>(sum);
}

TEST(BadTrace, TimesAndDurationsStayWhereSumsFit) {
  // 4e18 ns is the largest number that parses: as a time a date, as a duration nonsense.
  const auto store = ReadText("[" + Event("a", "1", "4000000000000000") + "," + Event("b", "2", "4000000000000000") +
                              "," + Event("c", "4000000000000000", "4000000000000000") + "," +
                              Event("month", "3", "2592000000000") + "," + Event("more", "4", "2592000000000.001") +
                              "," + Event("past", "-4000000000000000", "1") + "," + Event("early", "-5", "1") + "]");
  EXPECT_EQ(store.diagnostics.Count("trace.bad_duration"), 4u);
  EXPECT_EQ(store.diagnostics.Count("trace.huge_time"), 1u);
  EXPECT_EQ(store.spans.size(), 6u);
  EXPECT_EQ(Sum(store.spans.duration), 2'592'000'000'000'000 + 1000);
  const auto marks = ReadText(R"([{"ph":"B","name":"x","pid":1,"tid":1,"ts":0},)"
                              R"({"ph":"E","name":"x","pid":1,"tid":1,"ts":4000000000000000}])");
  ASSERT_EQ(marks.spans.size(), 1u);
  EXPECT_EQ(marks.spans.duration[0], 0);
  EXPECT_EQ(marks.diagnostics.Count("trace.long_mark"), 1u);
}

TEST(BadTrace, DurationsThatAddUpToCenturiesAreNoDurations) {
  std::string text;
  for (int i = 0; i < 4000; ++i) text += (i > 0 ? "," : "") + Event("m", std::to_string(i), "2592000000000");
  const auto store = ReadText("[" + text + "]");
  EXPECT_EQ(store.spans.size(), 4000u);
  EXPECT_EQ(Sum(store.spans.duration), 0);
  EXPECT_EQ(store.diagnostics.Count("trace.absurd_total"), 1u);
  EXPECT_TRUE(store.diagnostics.LostInput());
}

TEST(BadTrace, ABaseBehindWhichTimesLeaveTheCalendarIsNotUsed) {
  const auto store = ReadText("{\"baseTimeNanoseconds\":4000000000000000000,\"traceEvents\":[" +
                              Event("a", "4000000000000000", "1") + "]}");
  ASSERT_EQ(store.spans.size(), 1u);
  EXPECT_EQ(store.spans.begin[0], 4'000'000'000'000'000'000);
  EXPECT_EQ(store.diagnostics.Count("trace.bad_base_time"), 1u);
}

TEST(BadTrace, AmountsThatNoMachineHasAreNotTold) {
  const auto store = ReadText(
      R"([{"ph":"X","cat":"gpu_memcpy","name":"k","pid":0,"tid":7,"ts":4,"dur":1,"args":{"bytes":9223372036854775807}},)"
      R"({"ph":"X","cat":"gpu_memcpy","name":"k","pid":0,"tid":7,"ts":5,"dur":1,"args":{"bytes":4096}}])");
  ASSERT_EQ(store.spans.size(), 2u);
  EXPECT_EQ(store.gpu_args.Find(0)->bytes, -1);
  EXPECT_EQ(store.gpu_args.Find(1)->bytes, 4096);
  EXPECT_EQ(store.diagnostics.Count("trace.bad_amount"), 1u);
}

TEST(BadTrace, HugeNumbersInAnnotationsStayText) {
  const auto store = ReadText(R"([{"ph":"X","cat":"user_annotation","name":"n","pid":0,"tid":7,"ts":4,"dur":1,)"
                              R"("args":{"x":99999999999999999999999}}])");
  ASSERT_EQ(store.spans.size(), 1u);
  const auto* value = store.attributes.Find(0);
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(store.text(value->value), "99999999999999999999999");
}

TEST(BadTrace, DeepNestingIsDroppedAndCounted) {
  const std::string deep(5000, '[');
  const std::string close(5000, ']');
  const auto store =
      ReadText("[" + Event("good", "1", "1") + "," + Event("deep", "2", "1", ",\"args\":{\"x\":" + deep + close + "}") +
               "," + Event("last", "3", "1") + "]");
  EXPECT_EQ(store.spans.size(), 2u);
  EXPECT_EQ(Only(store, "trace.event_too_deep"), 1u);
}

TEST(BadTrace, AnEventLongerThanTheLimitIsSkipped) {
  RunOptions options;
  options.limits.max_event_bytes = 2u << 20;
  const auto store = ReadText("[" + Event("good", "1", "1") + "," + Event(std::string(9u << 20, 'x'), "2", "1") + "," +
                                  Event("last", "3", "1") + "," + Event("very last", "4", "1") + "]",
                              options);
  EXPECT_EQ(store.spans.size(), 3u);
  EXPECT_EQ(Only(store, "trace.event_too_long"), 1u);
}

TEST(BadTrace, AnEndlessStringIsSkippedToTheEnd) {
  RunOptions options;
  options.limits.max_event_bytes = 2u << 20;
  const auto store =
      ReadText("[" + Event("good", "1", "1") + ",{\"ph\":\"X\",\"name\":\"" + std::string(9u << 20, 'x'), options);
  EXPECT_EQ(store.spans.size(), 1u);
  EXPECT_GE(store.diagnostics.Count("trace.event_too_long"), 1u);
}

TEST(BadTrace, AMissingQuoteCostsOneEventOnly) {
  RunOptions options;
  options.limits.max_event_bytes = 1u << 20;
  std::string text = "[" + Many(20000) + "]";
  const size_t at = text.find("\"op100\"");
  text[at + 6] = ' ';
  const auto store = ReadText(text, options);
  EXPECT_GE(store.spans.size(), 19990u);
  EXPECT_TRUE(store.diagnostics.LostInput());
}

TEST(BadTrace, InvalidUtf8AndControlCharactersAreReplaced) {
  const auto store = ReadText("[" + Event("a\xFF", "1", "1") + "," + Event("b\x01\x1b[31m", "2", "1") + "," +
                              Event("c", "3", "1") + "]");
  ASSERT_EQ(store.spans.size(), 3u);
  EXPECT_EQ(store.name(0), "a\xEF\xBF\xBD");
  EXPECT_EQ(store.name(1), "b  [31m");
  EXPECT_EQ(store.diagnostics.Count("trace.invalid_utf8"), 2u);
}

TEST(BadTrace, BrokenEventsCostNoOthers) {
  const auto store = ReadText("[" + Event("a", "1", "1") + R"(,{"ph":"X" "name":1},{"ph"},{:},)" +
                              Event("b", "2", "1") + " " + Event("c", "3", "1") + "]");
  EXPECT_EQ(store.spans.size(), 3u) << "also without a comma between";
  EXPECT_EQ(Only(store, "trace.bad_event"), 3u);
}

TEST(BadTrace, MismatchedBracketsAreCounted) {
  const auto store =
      ReadText("[" + Event("a", "1", "1") + R"(,{"ph":"X","args":{"x":[1}},"ts":1},)" + Event("b", "2", "1") + "]");
  EXPECT_GE(store.spans.size(), 1u);
  EXPECT_TRUE(store.diagnostics.LostInput());
}

TEST(BadTrace, BadTopLevelValues) {
  const auto store =
      ReadText(R"({"distributedInfo":{"rank":"zero","world_size":-5},"baseTimeNanoseconds":"soon","traceEvents":[)" +
               Event("a", "1", "1") + "]} trailing");
  EXPECT_EQ(store.spans.size(), 1u);
  EXPECT_EQ(store.diagnostics.Count("trace.bad_base_time"), 1u);
  EXPECT_EQ(store.diagnostics.Count("trace.bad_rank"), 2u);
  EXPECT_EQ(store.diagnostics.Count("trace.trailing_text"), 1u);
}

TEST(BadTrace, TextBehindTheEventsThatIsNoJson) {
  const auto store = ReadText("{\"traceEvents\":[" + Event("a", "1", "1") + "] nonsense }");
  EXPECT_EQ(store.spans.size(), 1u);
  EXPECT_EQ(store.diagnostics.Count("trace.bad_json"), 1u);
}

TEST(BadTrace, SpansBeyondTheLimitAreCounted) {
  RunOptions options;
  options.limits.max_spans = 5;
  const auto store = ReadText("[" + Many(10) + "]", options);
  EXPECT_EQ(Only(store, "trace.too_many_spans"), 10u);
  EXPECT_EQ(store.files[0].dropped, 10u);
}

TEST(BadTrace, MoreCategoriesThanCanBeToldApart) {
  std::string text;
  for (int i = 0; i < 400; ++i) {
    if (i > 0) text += ",";
    text += R"({"ph":"X","cat":"c)" + std::to_string(i) + R"(","name":"n","pid":1,"tid":1,"ts":1,"dur":1})";
  }
  const auto store = ReadText("[" + text + "]");
  EXPECT_EQ(store.spans.size(), 400u);
  EXPECT_LE(store.categories.size(), 256u);
  EXPECT_GE(store.diagnostics.Count("trace.too_many_categories"), 1u);
}

}  // namespace
}  // namespace teller::ingest
