#include "base/byte_source.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

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

std::string Zstd(const std::string& text, int window_log = 0) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  if (window_log > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  ZSTD_inBuffer in{text.data(), text.size(), 0};
  ZSTD_outBuffer made{out.data(), out.size(), 0};
  // Two steps: what is compressed in one is known to be small, and its window shrinks.
  EXPECT_FALSE(ZSTD_isError(ZSTD_compressStream2(context, &made, &in, ZSTD_e_continue)));
  EXPECT_EQ(ZSTD_compressStream2(context, &made, &in, ZSTD_e_end), 0u);
  out.resize(made.pos);
  ZSTD_freeCCtx(context);
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

TEST(Zstd, ReadsFramesOfAllSizesInAllChunks) {
  for (const size_t n : {size_t{0}, size_t{1}, size_t{1000}, size_t{700'000}}) {
    const std::string text = SomeText(n);
    for (const size_t chunk : {size_t{1} + n / 1000, size_t{65536}, size_t{1} << 20}) {
      const auto back = ReadAll(Zstd(text), chunk);
      EXPECT_EQ(back.text, text);
      EXPECT_EQ(back.damage, "");
    }
  }
}

TEST(Zstd, ReadsSeveralFramesAlsoSkippableOnes) {
  const std::string skippable("\x53\x2a\x4d\x18\x03\x00\x00\x00xyz", 11);
  const auto back = ReadAll(skippable + Zstd("one ") + Zstd("") + skippable + Zstd("two"), 3);
  EXPECT_EQ(back.text, "one two");
  EXPECT_EQ(back.damage, "");
}

TEST(Zstd, SaysHowItEnded) {
  const std::string text = SomeText(300'000);
  const std::string packed = Zstd(text);
  const auto cut = ReadAll(packed.substr(0, packed.size() / 2), 4096);
  EXPECT_EQ(cut.damage, "zstd data ends in the middle of a frame");
  EXPECT_EQ(text.substr(0, cut.text.size()), cut.text);
  EXPECT_FALSE(cut.text.empty());
  EXPECT_EQ(ReadAll(packed.substr(0, packed.size() - 2), 4096).damage, "zstd data ends in the middle of a frame")
      << "the sum";
  std::string broken = packed;
  broken[broken.size() / 2] ^= 0x55;
  EXPECT_EQ(ReadAll(broken, 4096).damage, "zstd data is damaged");
  const auto padded = ReadAll(packed + "    padding", 4096);
  EXPECT_EQ(padded.text, text);
  EXPECT_EQ(padded.damage, "bytes after the last zstd frame were ignored");
  EXPECT_EQ(ReadAll(Zstd(text, 30), 4096).damage,
            "zstd data needs a window above 128 MiB; compress it again without --long");
}

TEST(FileRegion, IsReadAndDecompressedWhereItLies) {
  const std::string inner = Gzip("inside");
  const TestFile file("front" + inner + "back");
  const auto read = [](const std::string& path) {
    auto source = OpenFile(path);
    EXPECT_TRUE(source.has_value());
    std::string out(100, '\0');
    out.resize((*source)->Read(out.data(), out.size()).value());
    return out;
  };
  EXPECT_EQ(read(FileRegion(file.path(), 0, 5)), "front");
  EXPECT_EQ(read(FileRegion(file.path(), 5, inner.size())), "inside");
  EXPECT_EQ(read(FileRegion(file.path(), 5 + inner.size(), 1000)), "back") << "a region that ends behind the file";
  EXPECT_EQ(read(FileRegion(file.path(), 1'000'000, 5)), "");
  EXPECT_EQ(BytesOnDisk(FileRegion(file.path(), 3, 7)), 7u);
  EXPECT_EQ(BytesOnDisk(file.path()), 9 + inner.size());
}

}  // namespace
}  // namespace teller::base
