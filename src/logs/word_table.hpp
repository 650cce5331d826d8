#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace teller::logs {

enum class WordKind : uint8_t {
  kPlain,  ///< a word of language: letters, with punctuation around
  kName,   ///< letters that look like a name or a value: "FLASH_ATTN", "aten::mm", "'x'", "True", "step-<int>"
  kMarks,  ///< no letters beside placeholders: "<int>,", "|", "->"
};

/// A masked word and what comparing needs to know of it.
struct Word {
  std::string text;
  uint32_t skeleton = 0;  ///< equal for words that differ only in what kind of value they hold: "t=<int>", "t=<float>"
  WordKind kind = WordKind::kPlain;
  bool holes = false;  ///< has placeholders
  bool key = false;    ///< names a quantity: "n_ctx:", "maxBatchSize:"
  bool leads = false;  ///< what stands behind it is a value: ends in ":" or "="
  bool colon = false;  ///< ends in ":" behind a word of language or a value, so that text may follow
};

/// Every masked word once. Threads: confined.
class WordTable {
 public:
  static constexpr uint32_t kAny = 0;  ///< id of "<*>": a word that varies as a whole

  WordTable();
  uint32_t Id(std::string_view masked);
  /// The word of a shape that stands for both: one of them when they are equal, else one with placeholders, else kAny.
  uint32_t Join(uint32_t a, uint32_t b);
  const Word& operator[](uint32_t id) const { return words_[id]; }

 private:
  std::unordered_map<std::string, uint32_t> ids_;
  std::unordered_map<std::string, uint32_t> skeletons_;
  std::vector<Word> words_;
};

}  // namespace teller::logs
