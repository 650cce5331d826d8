#include <gtest/gtest.h>

#include "report/chunks.hpp"
#include "report/sample_run.hpp"
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
  out.text = TokensHead(vocabulary);
  for (size_t s = 0; s < segments.size(); ++s) {
    if (s > 0) out.text += ",";
    ASSERT_TRUE(WriteTokensSegment(sample.run, segments[s], out.sink).ok());
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
