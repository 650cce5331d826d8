#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "tpe/corpus.hpp"
#include "tpe/decoder.hpp"

namespace teller::tpe::testing {

/// One weighted forest of a test's corpus.
struct Sequence {
  Forest forest;
  uint64_t weight = 1;
};
using Sequences = std::vector<Sequence>;

/// The shapes that make encoders stumble.
enum class Shape { kRandom, kChain, kStar, kRuns, kFibonacci, kLayers, kTeeth, kEqual, kEqualChain };
inline constexpr int kShapes = 9;

inline Forest MakeForest(base::Rng& rng, Shape shape, uint32_t size, uint32_t alphabet) {
  Forest f;
  const auto add = [&](uint32_t symbol, uint32_t depth) {
    f.symbols.push_back(symbol);
    f.depths.push_back(depth);
  };
  uint32_t depth = static_cast<uint32_t>(rng.Below(4));
  if (shape == Shape::kFibonacci) {
    std::string a = "0", b = "01";
    while (b.size() < size) {
      const std::string next = b + a;
      a = b;
      b = next;
    }
    const bool nested = rng.Below(2) == 0;
    for (uint32_t i = 0; i < size; ++i) add(static_cast<uint32_t>(b[i] - '0') % alphabet, nested ? i % 3 : 0);
    return f;
  }
  if (shape == Shape::kLayers) {
    const Forest layer = MakeForest(rng, Shape::kRandom, 1 + static_cast<uint32_t>(rng.Below(12)), alphabet);
    const Forest other = MakeForest(rng, Shape::kRandom, 1 + static_cast<uint32_t>(rng.Below(12)), alphabet);
    while (f.symbols.size() < size) {
      const Forest& part = rng.Below(5) == 0 ? other : layer;
      for (size_t i = 0; i < part.symbols.size(); ++i) {
        uint32_t d = part.depths[i] - part.depths[0] + 2;
        if (part.depths[i] + 2 < part.depths[0]) d = 0;
        if (!f.depths.empty()) d = std::min(d, f.depths.back() + 1);
        add(rng.Below(30) == 0 ? static_cast<uint32_t>(rng.Below(alphabet)) : part.symbols[i], d);
      }
    }
    f.symbols.resize(size);
    f.depths.resize(size);
    return f;
  }
  for (uint32_t i = 0; i < size; ++i) {
    switch (shape) {
      case Shape::kRandom: add(static_cast<uint32_t>(rng.Below(alphabet)), depth); break;
      case Shape::kChain: add(rng.Below(20) == 0 ? static_cast<uint32_t>(rng.Below(alphabet)) : 0, i); break;
      case Shape::kStar: add(rng.Below(20) == 0 ? static_cast<uint32_t>(rng.Below(alphabet)) : 0, i > 0); break;
      case Shape::kRuns: add(static_cast<uint32_t>(i / 7 % alphabet), depth); break;
      case Shape::kEqual: add(0, depth = 1); break;
      case Shape::kEqualChain: add(0, i); break;
      default: add(static_cast<uint32_t>(rng.Below(alphabet)), i % 5 == 4 ? 0 : i % 5); break;
    }
    if (shape == Shape::kRuns) {
      if (rng.Below(10) == 0) depth = static_cast<uint32_t>(rng.Below(depth + 2));
    } else {
      depth = static_cast<uint32_t>(rng.Below(depth + 2));
    }
  }
  return f;
}

inline Forest AnyForest(base::Rng& rng, uint32_t max_size, uint32_t alphabet) {
  return MakeForest(rng, static_cast<Shape>(rng.Below(kShapes)), static_cast<uint32_t>(rng.Below(max_size + 1)),
                    alphabet);
}

/// A small corpus in which pairs repeat.
inline Sequences AnySequences(base::Rng& rng, uint32_t max_nodes, bool weighted) {
  Sequences all;
  const uint64_t count = 1 + rng.Below(6);
  const auto alphabet = static_cast<uint32_t>(1 + rng.Below(5));
  for (uint64_t i = 0; i < count; ++i) {
    Sequence s;
    if (!all.empty() && rng.Below(4) == 0) {
      s = all[rng.Below(all.size())];
    } else {
      s.forest = AnyForest(rng, max_nodes / static_cast<uint32_t>(count) + 1, alphabet);
    }
    s.weight = weighted ? 1 + rng.Below(5) : 1;
    all.push_back(std::move(s));
  }
  return all;
}

inline std::string Text(const Sequences& sequences) {
  std::string text;
  for (const Sequence& s : sequences) {
    text += "weight " + std::to_string(s.weight) + ":";
    for (size_t i = 0; i < s.forest.symbols.size(); ++i) {
      text += " " + std::to_string(s.forest.symbols[i]) + "@" + std::to_string(s.forest.depths[i]);
    }
    text += "\n";
  }
  return text;
}

/// Makes a failing corpus smaller as long as `fails`: drops sequences, halves, single nodes, weights.
inline Sequences Shrink(Sequences failing, const std::function<bool(const Sequences&)>& fails) {
  const auto valid = [](const Forest& f) { return ValidateForest({f.symbols, f.depths}).ok(); };
  for (bool smaller = true; smaller;) {
    smaller = false;
    const auto attempt = [&](Sequences next) {
      if (!fails(next)) return false;
      failing = std::move(next);
      return smaller = true;
    };
    for (size_t i = failing.size(); i-- > 0;) {
      Sequences next = failing;
      next.erase(next.begin() + static_cast<ptrdiff_t>(i));
      if (attempt(next)) continue;
      for (size_t step = failing[i].forest.symbols.size(); step > 0; step /= 2) {
        for (size_t at = 0; at + step <= failing[i].forest.symbols.size();) {
          next = failing;
          Forest& f = next[i].forest;
          const auto cut = [&](std::vector<uint32_t>& v) {
            v.erase(v.begin() + static_cast<ptrdiff_t>(at), v.begin() + static_cast<ptrdiff_t>(at + step));
          };
          cut(f.symbols);
          cut(f.depths);
          if (!valid(f) || !attempt(next)) at += step;
        }
      }
      next = failing;
      next[i].weight = 1;
      if (failing[i].weight > 1) attempt(next);
    }
  }
  return failing;
}

/// Symbols are named s0, s1 ... and spread over three classes.
inline uint32_t AddSymbols(Corpus& corpus, uint32_t count, uint32_t first = 0) {
  for (const char* name : {"op", "kernel", "api"}) (void)*corpus.AddClass(name);
  for (uint32_t i = 0; i < count; ++i) {
    (void)*corpus.AddSymbol((first + i) % 3, "s" + std::to_string(first + i));
  }
  return count;
}

inline Corpus MakeCorpus(const Sequences& sequences, Corpus::Options options = {}, uint32_t alphabet = 8) {
  Corpus corpus(options);
  AddSymbols(corpus, alphabet);
  for (const Sequence& s : sequences) {
    if (!corpus.Add({s.forest.symbols, s.forest.depths}, s.weight).ok()) std::abort();
  }
  return corpus;
}

/// The forest with a vocabulary's ids instead of the test's symbols.
inline Forest WithIds(const Forest& forest, const Vocabulary& vocabulary) {
  Forest out = forest;
  for (uint32_t& symbol : out.symbols) {
    const char* names[] = {"op", "kernel", "api"};
    symbol = vocabulary.SymbolFor(*vocabulary.FindClass(names[symbol % 3]), "s" + std::to_string(symbol)).id;
  }
  return out;
}

}  // namespace teller::tpe::testing
