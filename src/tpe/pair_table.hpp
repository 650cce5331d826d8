#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace teller::tpe {

/// From 64-bit words to 32-bit values by open addressing; the word of all ones cannot be a key. Threads: confined while
/// growing, immutable after.
class PairTable {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  explicit PairTable(uint64_t seed = 0) : seed_(seed * 2 + 1) { Resize(16); }

  /// The value of a word, or kNone.
  uint32_t Find(uint64_t word) const {
    for (size_t slot = SlotOf(word);; slot = (slot + 1) & mask_) {
      if (slots_[slot].word == word) return slots_[slot].value;
      if (slots_[slot].word == kFree) return kNone;
    }
  }
  /// The value of a word; when it was not there it gets `fresh`.
  uint32_t FindOrAdd(uint64_t word, uint32_t fresh) {
    for (size_t slot = SlotOf(word);; slot = (slot + 1) & mask_) {
      if (slots_[slot].word == word) return slots_[slot].value;
      if (slots_[slot].word == kFree) {
        slots_[slot] = {word, fresh};
        if (++used_ * 2 > slots_.size()) Resize(slots_.size() * 2);
        return fresh;
      }
    }
  }
  size_t size() const { return used_; }
  size_t bytes() const { return slots_.size() * sizeof(Slot); }
  /// Removes a word that is there.
  void Erase(uint64_t word) {
    size_t hole = SlotOf(word);
    while (slots_[hole].word != word) hole = (hole + 1) & mask_;
    // Words behind move up unless that would put them before the place where their search begins.
    for (size_t at = (hole + 1) & mask_; slots_[at].word != kFree; at = (at + 1) & mask_) {
      const size_t home = SlotOf(slots_[at].word);
      if (((at - home) & mask_) < ((at - hole) & mask_)) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole] = Slot{};
    --used_;
  }

 private:
  static constexpr uint64_t kFree = ~0ULL;
  struct Slot {
    uint64_t word = kFree;
    uint32_t value = kNone;
  };

  /// Takes the high bits of a product: low bits of words differ too little.
  size_t SlotOf(uint64_t word) const {
    const uint64_t folded = (word ^ (word >> 32)) * 0x9E3779B97F4A7C15ULL * seed_;
    return static_cast<size_t>(folded >> shift_);
  }
  void Resize(size_t slots) {
    std::vector<Slot> old(slots);
    old.swap(slots_);
    mask_ = slots - 1;
    shift_ = 64 - static_cast<unsigned>(__builtin_ctzll(slots));
    for (const Slot& slot : old) {
      if (slot.word == kFree) continue;
      size_t at = SlotOf(slot.word);
      while (slots_[at].word != kFree) at = (at + 1) & mask_;
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  uint64_t seed_;
  size_t mask_ = 0;
  unsigned shift_ = 60;
  size_t used_ = 0;
};

}  // namespace teller::tpe
