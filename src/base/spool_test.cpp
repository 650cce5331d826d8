#include "base/spool.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

namespace teller::base {
namespace {

std::string Contents(const std::string& path) {
  auto source = OpenFile(path);
  EXPECT_TRUE(source.has_value());
  std::string out, chunk(1 << 16, '\0');
  while (true) {
    const size_t got = (*source)->Read(chunk.data(), chunk.size()).value();
    if (got == 0) return out;
    out.append(chunk, 0, got);
  }
}

TEST(Spool, APipeCanBeReadTwice) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text(300'000, 'x');
  std::thread writer([&] {
    for (size_t at = 0; at < text.size();)
      at += static_cast<size_t>(::write(ends[1], text.data() + at, text.size() - at));
    ::close(ends[1]);
  });
  auto spool = Spool::OfDescriptor(ends[0]);
  writer.join();
  ::close(ends[0]);
  ASSERT_TRUE(spool.has_value());
  EXPECT_EQ(spool->size(), text.size());
  EXPECT_EQ(Contents(spool->path()), text);
  const Spool moved = std::move(*spool);
  EXPECT_EQ(Contents(moved.path()), text);
}

/// A source of more bytes than are kept in memory.
class Many : public ByteSource {
 public:
  Result<size_t> Read(char* into, size_t n) override {
    const size_t take = static_cast<size_t>(std::min<uint64_t>(n, left_));
    for (size_t i = 0; i < take; ++i) into[i] = static_cast<char>('a' + (left_ - i) % 23);
    left_ -= take;
    return take;
  }

 private:
  uint64_t left_ = Spool::kInMemory + 12345;
};

TEST(Spool, LargeStreamsGoToAFileWithoutAName) {
  const auto files = [] {
    size_t n = 0;
    std::error_code error;
    for (std::filesystem::directory_iterator it(std::filesystem::temp_directory_path(), error), end; it != end;
         it.increment(error)) {
      n += it->path().filename().string().starts_with("teller-");
    }
    return n;
  };
  const size_t before = files();
  Many source;
  auto spool = Spool::Of(source);
  ASSERT_TRUE(spool.has_value()) << spool.error().Text();
  EXPECT_EQ(spool->size(), Spool::kInMemory + 12345);
  EXPECT_EQ(files(), before);
  Many again;
  std::string want(Spool::kInMemory + 12345, '\0');
  ASSERT_EQ(again.Read(want.data(), want.size()).value(), want.size());
  EXPECT_TRUE(Contents(spool->path()) == want);
}

TEST(Spool, AClosedDescriptorIsAnError) {
  EXPECT_FALSE(Spool::OfDescriptor(987).has_value());
}

}  // namespace
}  // namespace teller::base
