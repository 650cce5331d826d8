#include "tpe/vocabulary_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tpe/encoder.hpp"
#include "tpe/random_forest_test.hpp"
#include "tpe/trainer.hpp"

namespace teller::tpe {
namespace {

Vocabulary Trained(uint64_t seed, uint32_t nodes) {
  base::Rng rng(seed);
  return *Train(testing::MakeCorpus(testing::AnySequences(rng, nodes, true)), {.max_merges = 40});
}

TEST(VocabularyFile, RoundTrip) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Vocabulary v = Trained(seed, 200);
    const std::string bytes = SerializeVocabulary(v);
    const auto back = ParseVocabulary(bytes);
    ASSERT_TRUE(back) << back.error().Text();
    EXPECT_TRUE(*back == v);
    EXPECT_EQ(SerializeVocabulary(*back), bytes);
    for (uint32_t id = 0; id < v.size(); ++id) {
      EXPECT_EQ(back->node_count(id), v.node_count(id));
      EXPECT_EQ(back->last_depth(id), v.last_depth(id));
      EXPECT_EQ(back->unknown_count(id), v.unknown_count(id));
    }
  }
}

TEST(VocabularyFile, NamesMayHoldAnyBytes) {
  Vocabulary v;
  const uint32_t c = *v.AddClass("op");
  (void)*v.AddBase(c, std::string("\0\n\xFF\"", 4));
  (void)*v.AddBase(c, "");
  (void)*v.AddBase(c, std::string(kMaxNameBytes, 'n'));
  EXPECT_FALSE(v.AddBase(c, std::string(kMaxNameBytes + 1, 'n')));
  EXPECT_FALSE(v.AddBase(c, ""));
  EXPECT_FALSE(v.AddClass("op"));
  const auto back = ParseVocabulary(SerializeVocabulary(v));
  ASSERT_TRUE(back);
  EXPECT_TRUE(*back == v);
  EXPECT_NE(VocabularyJson(v).find("\"kind\": \"base\""), std::string::npos);
}

TEST(VocabularyFile, WritingKeepsLinksModesAndWhatLiesBeside) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("teller_vocabulary_" + std::to_string(getpid()));
  fs::remove_all(folder);
  fs::create_directories(folder);
  const Vocabulary v = Trained(5, 100);
  const auto text = [](const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  std::ofstream(folder / "v.tpe.part") << "mine";
  std::ofstream(folder / "v.tpe") << "old";
  fs::permissions(folder / "v.tpe", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("v.tpe", folder / "link.tpe");
  ASSERT_TRUE(WriteVocabulary(v, (folder / "link.tpe").string()).ok());
  EXPECT_TRUE(fs::is_symlink(folder / "link.tpe"));
  EXPECT_EQ(text(folder / "v.tpe"), SerializeVocabulary(v));
  EXPECT_EQ(fs::status(folder / "v.tpe").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(text(folder / "v.tpe.part"), "mine");
  // The longest name that a file may have leaves no room for an ending.
  const fs::path longest = folder / (std::string(251, 'v') + ".tpe");
  EXPECT_TRUE(WriteVocabulary(v, longest.string()).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 4);
  // Devices are written to and stay what they are.
  EXPECT_TRUE(WriteVocabulary(v, "/dev/null").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const base::Status full = WriteVocabulary(v, "/dev/full");
  ASSERT_FALSE(full.ok());
  EXPECT_NE(full.error().message.find("No space"), std::string::npos) << full.error().message;
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_FALSE(WriteVocabulary(v, (folder / "no/such/v.tpe").string()).ok());
  fs::remove_all(folder);
}

/// Chains whose neighbours have to be compared over their whole length, again and again.
TEST(VocabularyFile, HostileChainsAreReadAndUsedInLinearTime) {
  Vocabulary v;
  const uint32_t c = *v.AddClass("op");
  constexpr uint32_t kLength = 60'000;
  std::vector<uint32_t> bases;
  for (uint32_t i = 0; i < kLength; ++i) bases.push_back(*v.AddBase(c, "b" + std::to_string(i)));
  uint32_t chain = bases[0];
  for (uint32_t i = 1; i < kLength; ++i) {
    chain = *v.AddMerge({bases[i], chain, 0});
    (void)*v.AddMerge({chain, bases[0], 0});
  }
  const Encoder encoder(v);
  EncodeScratch scratch;
  Tokens tokens;
  const std::vector<uint32_t> symbols = {bases[2], bases[1], bases[0]};
  const std::vector<uint32_t> depths(3, 0);
  ASSERT_TRUE(encoder.Encode({symbols, depths}, scratch, tokens).ok());
  EXPECT_EQ(tokens.ids.size(), 1U);
}

TEST(VocabularyFile, EveryChangedByteIsAnError) {
  const std::string bytes = SerializeVocabulary(Trained(3, 60));
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int flip = 1; flip < 256; ++flip) {
      std::string bad = bytes;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      const auto read = ParseVocabulary(bad, "v.tpe");
      ASSERT_FALSE(read) << "byte " << at << " xor " << flip;
      EXPECT_EQ(read.error().Text().find('\n'), std::string::npos);
    }
  }
}

TEST(VocabularyFile, EveryTruncationAndExtensionIsAnError) {
  const std::string bytes = SerializeVocabulary(Trained(3, 60));
  for (size_t size = 0; size < bytes.size(); ++size) ASSERT_FALSE(ParseVocabulary(bytes.substr(0, size))) << size;
  EXPECT_FALSE(ParseVocabulary(bytes + "x"));
  EXPECT_FALSE(ParseVocabulary(bytes + bytes));
}

/// A file whose checksum is right and whose content is hostile.
std::string WithBody(const std::string& body, const std::string& counts) {
  // The checksum is found from the message that tells it.
  std::string header = "teller-tpe-vocabulary 1\n" + counts + "body-bytes " + std::to_string(body.size()) + "\n";
  const auto wrong = ParseVocabulary(header + "checksum 00000000\n" + body);
  const std::string text = wrong.error().message;
  const std::string is = "is ";
  return header + "checksum " + text.substr(text.find(is) + is.size(), 8) + "\n" + body;
}

TEST(VocabularyFile, HostileContentBehindARightChecksum) {
  const std::string ok("\x00\x02op\x01\x00\x01x\x02\x01\x01\x01", 12);
  ASSERT_TRUE(ParseVocabulary(WithBody(ok, "classes 1\nentries 3\nmerges 1\n")));
  const std::vector<std::pair<std::string, std::string>> bad = {
      {std::string("\x00\x02op\x01\x00\x01x\x02\x01\x02\x01", 12), "classes 1\nentries 3\nmerges 1\n"},  // itself
      {std::string("\x00\x02op\x01\x00\x01x\x02\x09\x01\x01", 12), "classes 1\nentries 3\nmerges 1\n"},  // later one
      {std::string("\x00\x02op\x01\x00\x01x\x02\x01\x01\x02", 12), "classes 1\nentries 3\nmerges 1\n"},  // delta
      {std::string("\x00\x02op\x01\x07\x01x\x02\x01\x01\x01", 12), "classes 1\nentries 3\nmerges 1\n"},  // class
      {std::string("\x00\x02op\x03\x00\x01x\x02\x01\x01\x01", 12), "classes 1\nentries 3\nmerges 1\n"},  // kind
      {std::string("\x00\x02op\x00\x02op\x01\x01\x01x", 12), "classes 2\nentries 3\nmerges 0\n"},        // class twice
      {std::string("\x00\x02op\x02\x00\x00\x00\x02\x00\x00\x00", 12),
       "classes 1\nentries 3\nmerges 2\n"},                                                              // merge twice
      {std::string("\x00\xFF\xFF\xFF\xFF\x0Fop\x01\x00\x01x", 12), "classes 1\nentries 3\nmerges 0\n"},  // endless name
      {std::string("\x00\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12), "classes 1\nentries 1\nmerges 0\n"},
      {ok, "classes 1\nentries 2\nmerges 0\n"},
      {ok, "classes 2\nentries 3\nmerges 1\n"},
      {ok, "classes 1\nentries 3\nmerges 0\n"},
      {ok, "classes 1\nentries 99999999\nmerges 1\n"},
      {ok, "classes 1\nentries -3\nmerges 1\n"},
  };
  for (const auto& [body, counts] : bad) {
    const auto read = ParseVocabulary(WithBody(body, counts), "v.tpe");
    ASSERT_FALSE(read) << counts;
    EXPECT_EQ(read.error().path, "v.tpe");
    EXPECT_NE(read.error().code, base::Code::kUsage);
  }
}

/// Merges that double: the 24th would have more nodes than a token may.
TEST(VocabularyFile, NodesOfATokenAreBounded) {
  Vocabulary v;
  uint32_t x = *v.AddClass("op");
  for (int i = 0; i < 24; ++i) x = *v.AddMerge({x, x, 0});
  EXPECT_EQ(v.node_count(x), kMaxTokenNodes);
  EXPECT_EQ(v.AddMerge({x, x, 0}).error().code, base::Code::kLimit);
  EXPECT_EQ(v.AddMerge({x, 0, 0}).error().code, base::Code::kLimit);
}

TEST(VocabularyFile, SaysWhatIsWrong) {
  const auto text = [](const std::string& bytes) { return ParseVocabulary(bytes, "v.tpe").error().Text(); };
  EXPECT_EQ(text("{}"), "v.tpe: is no vocabulary of Trace Pair Encoding; make one with teller tpe train");
  EXPECT_NE(text("teller-tpe-vocabulary 2\n").find("version 2, this program reads version 1"), std::string::npos);
  EXPECT_EQ(ParseVocabulary("teller-tpe-vocabulary 2\n").error().code, base::Code::kUnsupported);
}

TEST(VocabularyFile, OnDisk) {
  const std::string path = (std::filesystem::temp_directory_path() / "teller_tpe_vocabulary_test.tpe").string();
  const Vocabulary v = Trained(4, 100);
  ASSERT_TRUE(WriteVocabulary(v, path).ok());
  const auto back = ReadVocabulary(path);
  ASSERT_TRUE(back);
  EXPECT_TRUE(*back == v);
  std::filesystem::remove(path);
  EXPECT_EQ(ReadVocabulary(path).error().code, base::Code::kNotFound);
  EXPECT_EQ(WriteVocabulary(v, "/nowhere/v.tpe").error().code, base::Code::kUnreadable);
}

}  // namespace
}  // namespace teller::tpe
