#include "locate/lost_ranks.hpp"

#include <gtest/gtest.h>

namespace teller::locate {
namespace {

constexpr base::DiagnosticKind kCut{"trace.cut", base::Severity::kDataLoss, "cut"};
constexpr base::DiagnosticKind kOdd{"trace.odd", base::Severity::kNotice, "odd"};

constexpr base::DiagnosticKind kDamaged{"input.damaged_json", base::Severity::kDataLoss, "damaged"};
constexpr base::DiagnosticKind kUnreadable{"input.unreadable", base::Severity::kDataLoss, "unreadable"};
constexpr base::DiagnosticKind kNotUsed{"input.named_not_used", base::Severity::kDataLoss, "not used"};

/// True when what compares ranks is doubted after that; what does not compare them must not be.
bool Doubts(const base::DiagnosticKind& kind, const char* file) {
  trace::Store store;
  store.files.resize(1);
  store.files[0].kind = file;
  store.files[0].path = "rank2.json.gz";
  store.diagnostics.Report(kind, *file == 0 ? trace::FileRow() : trace::FileRow(0), "byte 5000");
  std::vector<trace::Finding> findings(2);
  findings[0].compares_ranks = true;
  findings[0].view = findings[1].view = "horizontal";
  findings[0].score = findings[1].score = 0.9;
  DoubtWhatLostRanksMayExplain(store, findings);
  EXPECT_EQ(findings[1].score, 0.9) << "a log or a rank's own past tells it";
  EXPECT_EQ(findings[0].explanation.empty(), findings[0].score == 0.9);
  return findings[0].score == 0.45;
}

TEST(LostRanks, ComparisonsAreDoubtedWherePartOfATraceIsMissing) {
  EXPECT_TRUE(Doubts(kCut, "kineto"));
  EXPECT_TRUE(Doubts(kCut, "nsys"));
  EXPECT_FALSE(Doubts(kCut, "log"));
  EXPECT_FALSE(Doubts(kOdd, "kineto"));
}

TEST(LostRanks, ATraceOfWhichNothingIsLeftIsMissingToo) {
  EXPECT_TRUE(Doubts(kDamaged, "other"));
  EXPECT_TRUE(Doubts(kUnreadable, ""));
  EXPECT_FALSE(Doubts(kNotUsed, "other"));
}

}  // namespace
}  // namespace teller::locate
