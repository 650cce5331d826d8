#include "ingest/kineto/splitter.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace teller::ingest {

namespace {

constexpr size_t kBlock = 64;

/// One bit per byte of a block.
struct Masks {
  uint64_t quote = 0;
  uint64_t backslash = 0;
  uint64_t open = 0;   // { [
  uint64_t close = 0;  // } ]
};

// '{' and '[' differ in bit 0x20 only, and so do '}' and ']'.
constexpr char kFold = 0x20;

#if defined(__AVX512BW__)
Masks Classify(const char* p) {
  const __m512i v = _mm512_loadu_si512(p);
  const __m512i folded = _mm512_or_si512(v, _mm512_set1_epi8(kFold));
  return {.quote = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('"')),
          .backslash = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('\\')),
          .open = _mm512_cmpeq_epi8_mask(folded, _mm512_set1_epi8('{')),
          .close = _mm512_cmpeq_epi8_mask(folded, _mm512_set1_epi8('}'))};
}
#elif defined(__AVX2__)
uint64_t Equal(__m256i low, __m256i high, char c) {
  const __m256i want = _mm256_set1_epi8(c);
  const auto bits = [want](__m256i v) {
    return static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, want))));
  };
  return bits(low) | bits(high) << 32;
}

Masks Classify(const char* p) {
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
  const __m256i fold = _mm256_set1_epi8(kFold);
  const __m256i folded_low = _mm256_or_si256(low, fold);
  const __m256i folded_high = _mm256_or_si256(high, fold);
  return {.quote = Equal(low, high, '"'),
          .backslash = Equal(low, high, '\\'),
          .open = Equal(folded_low, folded_high, '{'),
          .close = Equal(folded_low, folded_high, '}')};
}
#else
Masks Classify(const char* p) {
  Masks m;
  for (size_t i = 0; i < kBlock; ++i) {
    const uint64_t bit = uint64_t{1} << i;
    const char c = p[i];
    if (c == '"') m.quote |= bit;
    if (c == '\\') m.backslash |= bit;
    if ((c | kFold) == '{') m.open |= bit;
    if ((c | kFold) == '}') m.close |= bit;
  }
  return m;
}
#endif

/// Bits of characters that a backslash escapes. `carry` tells whether the block's first character is escaped.
uint64_t Escaped(uint64_t backslash, uint64_t& carry) {
  if (backslash == 0) {
    const uint64_t escaped = carry;
    carry = 0;
    return escaped;
  }
  uint64_t escaped = carry;
  backslash &= ~carry;
  carry = 0;
  while (backslash != 0) {
    const int at = std::countr_zero(backslash);
    backslash &= ~(uint64_t{1} << at);
    if (at == 63) {
      carry = 1;
      break;
    }
    escaped |= uint64_t{2} << at;
    backslash &= ~(uint64_t{2} << at);  // an escaped backslash escapes nothing
  }
  return escaped;
}

/// Bit i = parity of bits 0..i.
uint64_t PrefixXor(uint64_t x) {
#if defined(__PCLMUL__) && defined(__AVX2__)
  const __m128i product = _mm_clmulepi64_si128(_mm_set_epi64x(0, static_cast<int64_t>(x)), _mm_set1_epi8(-1), 0);
  return static_cast<uint64_t>(_mm_cvtsi128_si64(product));
#else
  x ^= x << 1;
  x ^= x << 2;
  x ^= x << 4;
  x ^= x << 8;
  x ^= x << 16;
  x ^= x << 32;
  return x;
#endif
}

/// What is known at the start of a block.
struct Scan {
  uint64_t in_string = 0;  // all ones inside
  uint64_t escape_carry = 0;
  int64_t depth = 0;
  int64_t deepest = 0;
};

/// Walks one block. Returns true when the array ends in it.
bool Step(const char* p, size_t base, Scan& scan, Cut& cut) {
  Masks m = Classify(p);
  const uint64_t escaped = Escaped(m.backslash, scan.escape_carry);
  const uint64_t inside = PrefixXor(m.quote & ~escaped) ^ scan.in_string;
  scan.in_string = static_cast<uint64_t>(static_cast<int64_t>(inside) >> 63);
  m.open &= ~(inside | escaped);
  m.close &= ~(inside | escaped);
  const int opens = std::popcount(m.open);
  const int closes = std::popcount(m.close);
  scan.deepest = std::max(scan.deepest, scan.depth + opens);
  if (scan.depth - closes > 0) {  // cannot come back to the elements' level here
    scan.depth += opens - closes;
    return false;
  }
  for (uint64_t brackets = m.open | m.close; brackets != 0; brackets &= brackets - 1) {
    const uint64_t bit = brackets & (~brackets + 1);
    if ((m.open & bit) != 0) {
      ++scan.depth;
      continue;
    }
    const size_t at = base + static_cast<size_t>(std::countr_zero(bit));
    if (--scan.depth == 0) cut.boundary = at + 1;
    if (scan.depth < 0) {
      cut.array_end = at;
      return true;
    }
  }
  return false;
}

}  // namespace

Cut FindCut(std::string_view text) {
  Cut cut;
  Scan scan;
  size_t i = 0;
  bool ended = false;
  for (; !ended && i + kBlock <= text.size(); i += kBlock) ended = Step(text.data() + i, i, scan, cut);
  if (!ended && i < text.size()) {
    char tail[kBlock];
    std::memset(tail, ' ', kBlock);
    std::memcpy(tail, text.data() + i, text.size() - i);
    Step(tail, i, scan, cut);
  }
  cut.deepest = static_cast<uint32_t>(std::min<int64_t>(scan.deepest, UINT32_MAX));
  return cut;
}

Cut FindCutPlain(std::string_view text) {
  Cut cut;
  bool in_string = false;
  int64_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\') {
      ++i;  // whatever follows is no quote and no bracket
      continue;
    }
    if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '{' || c == '[')) {
      ++depth;
      cut.deepest = std::max(cut.deepest, static_cast<uint32_t>(depth));
    } else if (!in_string && (c == '}' || c == ']')) {
      if (--depth == 0) cut.boundary = i + 1;
      if (depth < 0) {
        cut.array_end = i;
        break;
      }
    }
  }
  return cut;
}

size_t FindElementAfter(std::string_view text, size_t from) {
  const auto skip_space = [&text](size_t i) {
    while (i < text.size() && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t')) ++i;
    return i;
  };
  for (size_t i = text.find('}', from); i != std::string_view::npos; i = text.find('}', i + 1)) {
    size_t j = skip_space(i + 1);
    if (j >= text.size() || text[j] != ',') continue;
    const size_t element = skip_space(j + 1);
    if (element >= text.size() || text[element] != '{') continue;
    j = skip_space(element + 1);
    if (j + 1 >= text.size() || text[j] != '"') continue;
    if (std::isalpha(static_cast<unsigned char>(text[j + 1])) != 0) return element;
  }
  return Cut::kNone;
}

}  // namespace teller::ingest
