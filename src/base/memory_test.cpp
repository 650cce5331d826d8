#include "base/memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace teller::base {
namespace {

TEST(PageBuffer, GrowKeepsTheFront) {
  PageBuffer buffer(100);
  std::memcpy(buffer.data(), "abc", 3);
  buffer.Grow(5u << 20, 3);
  EXPECT_GE(buffer.size(), 5u << 20);
  EXPECT_EQ(std::memcmp(buffer.data(), "abc", 3), 0);
  buffer.data()[buffer.size() - 1] = 'x';
}

TEST(PageBuffer, LargeOnesAreAlignedForHugePages) {
  const PageBuffer buffer(3u << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % (2u << 20), 0u);
}

TEST(ChunkArena, PiecesAreAlignedDisjointAndOutliveTheArena) {
  std::vector<std::shared_ptr<char>> pieces;
  {
    ChunkArena arena;
    for (int i = 0; i < 100; ++i) {
      pieces.push_back(arena.Allocate(100'000));
      std::memset(pieces.back().get(), i, 100'000);
    }
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pieces[static_cast<size_t>(i)].get()) % 64, 0u);
    EXPECT_EQ(pieces[static_cast<size_t>(i)].get()[99'999], static_cast<char>(i));
  }
}

TEST(ChunkArena, APieceMayBeLargerThanAChunk) {
  ChunkArena arena;
  const auto piece = arena.Allocate(64u << 20);
  piece.get()[(64u << 20) - 1] = 'x';
  EXPECT_EQ(piece.get()[(64u << 20) - 1], 'x');
}

}  // namespace
}  // namespace teller::base
