#include "locate/lost_ranks.hpp"

#include <gtest/gtest.h>

namespace teller::locate {
namespace {

constexpr base::DiagnosticKind kCut{"trace.cut", base::Severity::kDataLoss, "cut"};
constexpr base::DiagnosticKind kOdd{"trace.odd", base::Severity::kNotice, "odd"};

TEST(LostRanks, ComparisonsAreDoubtedWherePartOfATraceIsMissing) {
  for (const bool cut : {true, false}) {
    for (const char* kind : {"kineto", "log"}) {
      trace::Store store;
      store.files.resize(1);
      store.files[0].kind = kind;
      store.files[0].path = "rank2.json.gz";
      store.diagnostics.Report(cut ? kCut : kOdd, trace::FileRow(0), "byte 5000");
      std::vector<trace::Finding> findings(2);
      findings[0].view = "horizontal";
      findings[0].score = findings[1].score = 0.9;
      findings[1].view = "vertical";
      DoubtWhatLostRanksMayExplain(store, findings);
      const bool doubted = cut && std::string(kind) == "kineto";
      EXPECT_EQ(findings[0].score, doubted ? 0.45 : 0.9);
      EXPECT_EQ(findings[0].explanation.empty(), !doubted);
      EXPECT_EQ(findings[1].score, 0.9);
    }
  }
}

}  // namespace
}  // namespace teller::locate
