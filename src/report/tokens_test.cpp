#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "report/printable.hpp"
#include "report/sample_run.hpp"
#include "report/table.hpp"
#include "report/token_names.hpp"
#include "report/token_stats.hpp"
#include "report/tokens_json.hpp"
#include "report/tokens_read.hpp"
#include "report/tokens_text.hpp"

namespace teller::report {
namespace {

using Json = nlohmann::ordered_json;

/// Collects what is written, up to a number of pieces.
struct Collected {
  std::string text;
  size_t largest = 0;
  size_t calls = 0;
  size_t allowed = SIZE_MAX;
  Sink sink = [this](std::string_view piece) -> base::Status {
    largest = std::max(largest, piece.size());
    if (calls++ == allowed) return base::Error{.code = base::Code::kUnreadable, .message = "no space"};
    text += piece;
    return {};
  };
};

engine::NamedVocabulary BuiltIn() {
  auto vocabulary = engine::LoadVocabulary("");
  TELLER_CHECK(vocabulary.has_value());
  return std::move(*vocabulary);
}

std::vector<engine::EncodedSegment> Encoded(const engine::Run& run, const engine::NamedVocabulary& vocabulary) {
  std::vector<engine::EncodedSegment> segments;
  const base::Status done =
      engine::EncodeRun(run, vocabulary, {.all = true}, nullptr, [&](const engine::EncodedSegment& segment) {
        segments.push_back(segment);
        return base::Status();
      });
  EXPECT_TRUE(done.ok());
  return segments;
}

/// A segment of `copies` times two nodes: a known name over an unknown one.
ReadSegment ManyNodes(const tpe::Vocabulary& vocabulary, uint32_t known, uint32_t copies) {
  ReadSegment segment;
  segment.label = {{"kind", "step"}, {"nodes", 2 * copies}};
  segment.nodes = 2 * copies;
  const uint32_t unknown = vocabulary.Unknown(vocabulary.class_of(known));
  for (uint32_t i = 0; i < copies; ++i) {
    segment.ids.insert(segment.ids.end(), {known, unknown});
    segment.depths.insert(segment.depths.end(), {0, 1});
    segment.unknown.push_back({2 * i + 1, 7 + i % 3});
  }
  return segment;
}

tpe::Vocabulary SmallVocabulary() {
  tpe::Vocabulary vocabulary;
  TELLER_CHECK(vocabulary.AddClass("op").has_value());
  TELLER_CHECK(vocabulary.AddBase(0, "aten::mm").has_value());
  return vocabulary;
}

TEST(Tokens, AreReadBackAsTheyWereWritten) {
  const SampleRun sample("aten::never_seen");
  const engine::NamedVocabulary vocabulary = BuiltIn();
  const auto segments = Encoded(sample.run, vocabulary);
  ASSERT_FALSE(segments.empty());
  Collected out;
  out.text = TokensHead(vocabulary, nullptr);
  for (size_t s = 0; s < segments.size(); ++s) {
    if (s > 0) out.text += ",";
    ASSERT_TRUE(WriteTokensSegment(sample.run, segments[s], nullptr, out.sink).ok());
  }
  out.text += TokensTail();
  const auto tokens = TokensFromJson(out.text, "tokens.json");
  ASSERT_TRUE(tokens.has_value()) << tokens.error().Text();
  EXPECT_EQ(tokens->fingerprint, vocabulary.fingerprint);
  ASSERT_EQ(tokens->segments.size(), segments.size());
  size_t unknown = 0;
  for (size_t s = 0; s < segments.size(); ++s) {
    EXPECT_EQ(tokens->segments[s].ids, segments[s].tokens.ids);
    EXPECT_EQ(tokens->segments[s].depths, segments[s].tokens.depths);
    unknown += tokens->segments[s].unknown.size();
    const auto forest = DecodeSegment(vocabulary.vocabulary, tokens->segments[s], 1000);
    ASSERT_TRUE(forest.has_value()) << forest.error().Text();
    EXPECT_EQ(forest->symbols.size(), segments[s].forest.size());
  }
  EXPECT_GT(unknown, 0u);
}

/// Columns of the longest line.
size_t Widest(const std::string& text) {
  size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, Columns(line));
  return widest;
}

/// Words of a text with the blanks and line breaks between them made one.
std::string Unwrapped(const std::string& text) {
  std::string out;
  std::istringstream words(text);
  for (std::string word; words >> word;) out += word + " ";
  return out;
}

TEST(TokensText, NamesTheWorstConstituentAtEightyColumns) {
  const std::string name = "aten::an_operator_whose_name_takes_the_better_part_of_a_line";
  const SampleRun sample(name);
  const engine::NamedVocabulary vocabulary = BuiltIn();
  std::vector<engine::EncodedSegment> segments = Encoded(sample.run, vocabulary);
  const TokensText text(sample.run, vocabulary, nullptr, {.width = 80});
  EXPECT_LE(Widest(text.Head()), 80u);
  size_t named = 0;
  for (engine::EncodedSegment& segment : segments) {
    for (size_t t = 0; t < segment.tokens.size(); ++t) {
      const size_t node = segment.tokens.first_node[t];
      const trace::SpanRow span = segment.forest.span[node];
      if (!span.valid() || sample.run.store.name(span.value()) != name) continue;
      segment.attributes[t].worst_offset = 0;
      segment.attributes[t].worst = {.z = 1e6F, .excess = 5 * base::kMilli};
      for (const bool tokens : {false, true}) {
        Collected out;
        ASSERT_TRUE(text.WriteSegment(segment, tokens, out.sink).ok());
        EXPECT_LE(Widest(out.text), 80u) << out.text;
        EXPECT_NE(Unwrapped(out.text).find(" at 0: " + name), std::string::npos) << out.text;
      }
      ++named;
    }
  }
  EXPECT_GT(named, 0u);
}

TEST(TokenNames, AreCountedWithoutTheUnknownEntryOfEachLayer) {
  tpe::Vocabulary small = SmallVocabulary();
  TELLER_CHECK(small.AddClass("kernel").has_value());
  TELLER_CHECK(small.AddMerge({.left = 1, .right = 1, .delta = 1}).has_value());
  EXPECT_EQ(small.size(), 4u);
  EXPECT_EQ(NameCount(small), 1u);
  const engine::NamedVocabulary vocabulary = engine::WithName(std::move(small), "small");
  const SampleRun sample;
  const std::string says = "small: 1 names, 1 merges";
  EXPECT_NE(TokensText(sample.run, vocabulary, nullptr, {}).Head().find(says), std::string::npos);
  EXPECT_NE(TokenStatsToText({}, vocabulary, {}, {}).find(says), std::string::npos);
  const engine::Training training{.vocabulary = vocabulary.vocabulary};
  EXPECT_NE(TrainingToText(training, "small.tpe", {}).find("1 names in 2 classes, 1 merges"), std::string::npos);
}

engine::TokenCounts LargeCounts() {
  return {.files = 56, .steps = 1'087, .nodes = 1'449'495, .structure = 2'975, .tokens = 123'456, .unknown = 45'678};
}

TEST(TokenStats, LoseNoColumnAtEightyColumns) {
  const engine::NamedVocabulary vocabulary = BuiltIn();
  const engine::TokenStats stats{.engines = {{"tensorrt_llm", LargeCounts()}}, .steps = LargeCounts()};
  const std::string text = TokenStatsToText({}, vocabulary, stats, {.width = 80});
  EXPECT_LE(Widest(text), 80u) << text;
  EXPECT_NE(text.find("saved unknown\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" 91.48%   3.15%\n"), std::string::npos) << text;
}

TEST(Sweep, ShowsEveryEngineAndSizeAtEightyColumns) {
  engine::Sweep sweep;
  sweep.engines = {{.engine = "llamacpp", .train_files = 3, .files = 3, .steps = 535, .nodes = 100'000},
                   {.engine = "vllm", .train_files = 4, .files = 5, .steps = 207, .nodes = 200'000}};
  for (const uint32_t asked : {0u, 256u, 1024u, 4096u, 16384u, 65536u}) {
    sweep.tpe.push_back({.asked = asked, .merges = asked, .tokens = 1, .tokens_by_engine = {100'000 - asked, 9}});
  }
  const std::string text = SweepToText(sweep, {.width = 80});
  EXPECT_LE(Widest(text), 80u) << text;
  const std::string words = Unwrapped(text);
  for (const char* row : {"llamacpp 3 3 535 186.9 16,384 16.38% ", "llamacpp 3 3 535 186.9 65,536 65.54% ",
                          "llamacpp 3 3 535 186.9 0 0.00% ", "vllm 4 5 207 966.2 65,536 100.00% "}) {
    EXPECT_NE(words.find(row), std::string::npos) << row << text;
  }
}

TEST(Table, IsNeverCut) {
  Page page({.width = 10});
  Table table({"name", "figure"});
  table.Row({"a long name", "12"});
  table.Row({"\x1b[2J", "345678"});
  table.AddTo(page);
  EXPECT_EQ(page.Take(), "name        figure\na long name     12\n\\x1b[2J     345678\n");
}

TEST(Forest, IsWrittenInPieces) {
  const tpe::Vocabulary vocabulary = SmallVocabulary();
  const ReadSegment segment = ManyNodes(vocabulary, *vocabulary.Find(0, "aten::mm"), 100'000);
  const auto forest = DecodeSegment(vocabulary, segment, 1'000'000);
  ASSERT_TRUE(forest.has_value()) << forest.error().Text();
  const auto json = [&](const Sink& sink) { return WriteForestJson(vocabulary, segment, *forest, sink); };
  const auto text = [&](const Sink& sink) { return WriteForestText(vocabulary, segment, *forest, {}, sink); };

  Collected columns;
  ASSERT_TRUE(json(columns.sink).ok());
  EXPECT_LT(columns.largest, 100'000u);
  const Json read = Json::parse(columns.text);
  EXPECT_EQ(read["symbols"].dump(),
            R"([{"layer":"op","name":"aten::mm"},{"layer":"op","unknown":"0000000000000007"},)"
            R"({"layer":"op","unknown":"0000000000000008"},{"layer":"op","unknown":"0000000000000009"}])");
  ASSERT_EQ(read["symbol"].size(), 200'000u);
  EXPECT_EQ(read["symbol"][0], 0);
  EXPECT_EQ(read["symbol"][3], 2);
  EXPECT_EQ(read["depth"], Json(forest->depths));

  Collected lines;
  ASSERT_TRUE(text(lines.sink).ok());
  EXPECT_LT(lines.largest, 100'000u);
  EXPECT_EQ(std::count(lines.text.begin(), lines.text.end(), '\n'), 200'001);

  for (const auto& write : {std::function(json), std::function(text)}) {
    Collected refused;
    refused.allowed = 1;
    EXPECT_FALSE(write(refused.sink).ok());
    EXPECT_EQ(refused.calls, 2u);
  }
}

}  // namespace
}  // namespace teller::report
