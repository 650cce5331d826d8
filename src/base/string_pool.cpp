#include "base/string_pool.hpp"

#include <algorithm>
#include <cstring>

namespace teller::base {

namespace {

constexpr size_t kBlockBytes = 1 << 16;

/// Multiply-fold over 8-byte words: fast on short names, deterministic over runs and machines of one byte order.
uint64_t HashText(std::string_view text) {
  constexpr uint64_t kMul = 0x9E3779B97F4A7C15ULL;
  uint64_t h = text.size() * kMul;
  const char* p = text.data();
  size_t n = text.size();
  const auto mix = [&h](uint64_t word) {
    const auto wide = static_cast<unsigned __int128>(h ^ word) * kMul;
    h = static_cast<uint64_t>(wide) ^ static_cast<uint64_t>(wide >> 64);
  };
  while (n >= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    mix(word);
    p += 8;
    n -= 8;
  }
  if (n > 0) {
    uint64_t word = 0;
    std::memcpy(&word, p, n);
    mix(word);
  }
  return h ^ (h >> 32);
}

}  // namespace

StringPool::StringPool() : table_(1024, 0) { Intern(""); }

uint32_t StringPool::Slot(std::string_view text, uint64_t hash) const {
  const uint32_t mask = static_cast<uint32_t>(table_.size() - 1);
  uint32_t slot = static_cast<uint32_t>(hash) & mask;
  while (table_[slot] != 0) {
    const uint32_t row = table_[slot] - 1;
    if (hashes_[row] == hash && views_[row] == text) return slot;
    slot = (slot + 1) & mask;
  }
  return slot;
}

StringId StringPool::Find(std::string_view text) const {
  const uint32_t slot = Slot(text, HashText(text));
  return table_[slot] == 0 ? StringId() : StringId(table_[slot] - 1);
}

StringId StringPool::Intern(std::string_view text) {
  const uint64_t hash = HashText(text);
  uint32_t slot = Slot(text, hash);
  if (table_[slot] != 0) return StringId(table_[slot] - 1);
  if ((views_.size() + 1) * 2 > table_.size()) {
    Grow();
    slot = Slot(text, hash);
  }
  views_.push_back(Keep(text));
  hashes_.push_back(hash);
  table_[slot] = static_cast<uint32_t>(views_.size());
  return StringId(static_cast<uint32_t>(views_.size() - 1));
}

void StringPool::Grow() {
  table_.assign(table_.size() * 2, 0);
  const uint32_t mask = static_cast<uint32_t>(table_.size() - 1);
  for (uint32_t row = 0; row < hashes_.size(); ++row) {
    uint32_t slot = static_cast<uint32_t>(hashes_[row]) & mask;
    while (table_[slot] != 0) slot = (slot + 1) & mask;
    table_[slot] = row + 1;
  }
}

std::string_view StringPool::Keep(std::string_view text) {
  if (text.empty()) return {};
  if (blocks_.empty() || block_used_ + text.size() > blocks_.back().size()) {
    blocks_.emplace_back(std::max(kBlockBytes, text.size()));
    block_used_ = 0;
  }
  char* at = blocks_.back().data() + block_used_;
  std::memcpy(at, text.data(), text.size());
  block_used_ += text.size();
  return {at, text.size()};
}

uint64_t StringPool::bytes() const {
  uint64_t total = table_.size() * 4 + views_.size() * (sizeof(std::string_view) + 8);
  for (const auto& block : blocks_) total += block.size();
  return total;
}

}  // namespace teller::base
