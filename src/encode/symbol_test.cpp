// Drives the case files in tests/cases/symbols; their README says how they are written.
#include "encode/symbol.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/rng.hpp"

namespace teller::encode {
namespace {

using trace::SpanKind;

const std::map<std::string, SpanKind> kKinds = {{"other", SpanKind::kOther},
                                                {"python", SpanKind::kPython},
                                                {"op", SpanKind::kOp},
                                                {"annotation", SpanKind::kAnnotation},
                                                {"gpu-annotation", SpanKind::kGpuAnnotation},
                                                {"runtime", SpanKind::kRuntime},
                                                {"driver", SpanKind::kDriver},
                                                {"kernel", SpanKind::kKernel},
                                                {"copy", SpanKind::kCopy}};

struct CaseName {
  SpanKind kind;
  std::string name;
  std::string place;
};

TEST(Symbols, NamesOfTheCaseFilesBecomeTheirSymbols) {
  size_t names = 0;
  for (const auto& file : std::filesystem::directory_iterator("tests/cases/symbols")) {
    if (file.path().extension() != ".txt") continue;
    std::ifstream in(file.path());
    std::set<std::string> symbols;
    std::vector<CaseName> open;
    std::string line;
    for (size_t number = 1; std::getline(in, line); ++number) {
      if (line.starts_with("< ")) {
        const size_t space = line.find(' ', 2);
        const auto kind = kKinds.find(line.substr(2, space - 2));
        ASSERT_NE(kind, kKinds.end()) << file.path() << ":" << number;
        open.push_back(
            {kind->second, line.substr(space + 1), file.path().filename().string() + ":" + std::to_string(number)});
      } else if (line.starts_with("> ")) {
        EXPECT_TRUE(symbols.insert(line).second) << file.path() << ":" << number << ": two operators meet";
        for (const CaseName& one : open) {
          const Symbol symbol = Normalize(one.kind, one.name);
          EXPECT_EQ(std::string(Name(symbol.layer)) + " " + symbol.name, line.substr(2))
              << one.place << ": " << one.name;
          ++names;
        }
        open.clear();
      } else {
        ASSERT_TRUE(line.empty() || line.starts_with("#")) << file.path() << ":" << number;
      }
    }
    EXPECT_TRUE(open.empty()) << file.path() << " ends without a symbol";
  }
  EXPECT_GT(names, 500u);
}

TEST(Symbols, AnyBytesGiveAShortPrintableName) {
  static constexpr std::string_view kPieces[] = {"<",           ">",     "(",        ")",           "::",
                                                 "void ",       "_Z",    "N",        "4294967296x", "_ZN99999999999",
                                                 "ncclKernel_", "Cijk_", "cutlass",  "0x1f",        "/usr/lib/",
                                                 "'Module': '", "{",     ", seq = ", "nn.Module: ", "\xff\xfe",
                                                 "\x1b[2J",     "\n",    "aten::mm", "sm"};
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    base::Rng rng(seed);
    std::string name;
    const size_t pieces = 1 + rng.Below(seed % 50 == 0 ? 3000 : 12);
    for (size_t i = 0; i < pieces; ++i) {
      if (rng.Below(3) == 0) {
        name += static_cast<char>(rng.Below(256));
      } else {
        name += kPieces[rng.Below(std::size(kPieces))];
      }
    }
    for (int kind = 0; kind < trace::kSpanKinds; ++kind) {
      const Symbol symbol = Normalize(static_cast<SpanKind>(kind), name);
      EXPECT_LE(symbol.name.size(), kMaxSymbolBytes) << seed;
      for (const char c : symbol.name) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7f) << seed;
      EXPECT_EQ(symbol, Normalize(static_cast<SpanKind>(kind), name));
    }
  }
}

TEST(Symbols, LayersStayApart) {
  std::set<Symbol> symbols;
  for (const SpanKind kind :
       {SpanKind::kPython, SpanKind::kOp, SpanKind::kAnnotation, SpanKind::kRuntime, SpanKind::kDriver,
        SpanKind::kKernel, SpanKind::kCopy, SpanKind::kMemset, SpanKind::kGpuAnnotation, SpanKind::kSync,
        SpanKind::kOverhead, SpanKind::kProfiler, SpanKind::kService, SpanKind::kOther}) {
    symbols.insert(Normalize(kind, "forward"));
  }
  EXPECT_EQ(symbols.size(), 14u);
}

TEST(Symbols, LongNamesThatDifferLateStayApart) {
  const std::string common(400, 'a');
  const Symbol one = Normalize(SpanKind::kOp, common + "x");
  const Symbol two = Normalize(SpanKind::kOp, common + "y");
  EXPECT_NE(one, two);
  EXPECT_EQ(one.name.size(), kMaxSymbolBytes);
}

TEST(Symbols, WhereSomethingIsInstalledDoesNotShow) {
  for (const std::string name : {"/home/alice/work/serve.py(12): run", "/Users/bob/serve.py(12): run",
                                 "C:\\Users\\carol\\serve.py(12): run", "/data/dave/project/serve.py(1): run"}) {
    EXPECT_EQ(Normalize(SpanKind::kPython, name).name, "serve.py: run") << name;
  }
  EXPECT_EQ(Normalize(SpanKind::kAnnotation, "load /home/alice/models/llama.bin").name, "load llama.bin");
}

}  // namespace
}  // namespace teller::encode
