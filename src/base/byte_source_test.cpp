#include "base/byte_source.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "base/rng.hpp"

namespace teller::base {
namespace {

class TestFile {
 public:
  explicit TestFile(const std::string& bytes)
      : path_(std::filesystem::temp_directory_path() / ("teller_source_" + std::to_string(::getpid()))) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TestFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string Gzip(const std::string& text) {
  std::string out(compressBound(text.size()) + 64, '\0');
  z_stream z = {};
  EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

std::string SomeText(size_t n) {
  Rng rng(n);
  std::string text;
  while (text.size() < n) text += "event " + std::to_string(rng.Below(5000)) + ", ";
  text.resize(n);
  return text;
}

struct ReadBack {
  std::string text;
  std::string damage;
};

ReadBack ReadAll(const std::string& bytes, size_t chunk) {
  const TestFile file(bytes);
  auto source = OpenFile(file.path());
  EXPECT_TRUE(source.has_value());
  ReadBack out;
  std::string buffer(chunk, '\0');
  while (true) {
    auto got = (*source)->Read(buffer.data(), chunk);
    EXPECT_TRUE(got.has_value());
    out.text.append(buffer, 0, *got);
    if (*got < chunk) break;
  }
  EXPECT_EQ((*source)->Read(buffer.data(), chunk).value(), 0u) << "the end stays the end";
  out.damage = (*source)->damage();
  return out;
}

TEST(ByteSource, PlainAndGzipGiveTheSameBytesForAnyChunk) {
  const std::string text = SomeText(3'000'000);
  for (const size_t chunk : {1000u, 65536u, 10'000'000u}) {
    EXPECT_EQ(ReadAll(text, chunk).text, text);
    const auto packed = ReadAll(Gzip(text), chunk);
    EXPECT_EQ(packed.text, text);
    EXPECT_EQ(packed.damage, "");
  }
}

TEST(ByteSource, MembersFollowEachOther) {
  std::string packed;
  std::string text;
  for (const size_t n : {0u, 1u, 100'000u, 17u, 3'000'000u}) {
    packed += Gzip(SomeText(n));
    text += SomeText(n);
  }
  const auto back = ReadAll(packed, 4096);
  EXPECT_EQ(back.text, text);
  EXPECT_EQ(back.damage, "");
}

TEST(ByteSource, ACutMemberGivesItsFrontAndSaysSo) {
  const std::string text = SomeText(500'000);
  const std::string packed = Gzip(text);
  for (const size_t keep : {size_t{5}, size_t{20}, packed.size() / 2, packed.size() - 9, packed.size() - 1}) {
    const auto back = ReadAll(packed.substr(0, keep), 65536);
    EXPECT_EQ(back.text, text.substr(0, back.text.size()));
    EXPECT_NE(back.damage, "") << keep;
    if (keep > packed.size() / 3) {
      EXPECT_GT(back.text.size(), text.size() / 4);
    }
  }
}

TEST(ByteSource, DamageAndPaddingAreTold) {
  std::string packed = Gzip(SomeText(500'000));
  EXPECT_NE(ReadAll(packed + std::string(512, '\0'), 65536).damage, "") << "padding";
  EXPECT_EQ(ReadAll(packed + std::string(512, '\0'), 65536).text, SomeText(500'000));
  packed[packed.size() - 6] = static_cast<char>(~packed[packed.size() - 6]);
  EXPECT_NE(ReadAll(packed, 65536).damage, "") << "the check sum";
}

TEST(ByteSource, RefusesWhatIsNoFile) {
  EXPECT_EQ(OpenFile("/nonexistent/file").error().code, Code::kNotFound);
  EXPECT_EQ(OpenFile("/").error().code, Code::kUnreadable);
}

TEST(ByteSource, MemoryReadsToItsEnd) {
  const auto source = OpenMemory("abc");
  char buffer[2];
  EXPECT_EQ(source->Read(buffer, 2).value(), 2u);
  EXPECT_EQ(source->Read(buffer, 2).value(), 1u);
  EXPECT_EQ(source->Read(buffer, 2).value(), 0u);
}

}  // namespace
}  // namespace teller::base
