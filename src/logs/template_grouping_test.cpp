#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <set>

#include "logs/grouping_set_for_test.hpp"
#include "logs/template_miner.hpp"

namespace teller::logs {
namespace {

constexpr size_t kLines = 2000;

/// Statements whose records are not one group, most records first.
void Explain(const LabelledSet& set, const std::vector<Statement>& statements, size_t shown) {
  std::map<size_t, std::set<uint32_t>> groups;
  std::map<uint32_t, std::set<size_t>> members;
  std::map<size_t, size_t> sizes;
  for (size_t i = 0; i < set.truth.size(); ++i) {
    groups[set.truth[i]].insert(set.store.logs[i].template_id);
    members[set.store.logs[i].template_id].insert(set.truth[i]);
    ++sizes[set.truth[i]];
  }
  for (const auto& [statement, ids] : groups) {
    size_t joined = 0;
    for (const uint32_t id : ids) joined = std::max(joined, members[id].size());
    if ((ids.size() == 1 && joined == 1) || shown == 0) continue;
    --shown;
    std::cout << "  " << sizes[statement] << " lines, " << ids.size() << " groups, joined with " << joined - 1 << ": "
              << statements[statement].pattern.substr(0, 100) << "\n";
  }
}

double Measure(const std::vector<Statement>& statements, uint64_t seed, size_t shown) {
  LabelledSet set = MakeLabelled(statements, kLines, seed);
  const TemplateTable table = MineTemplates(set.store);
  const double accuracy = GroupingAccuracy(set.store, set.truth);
  std::cout << "grouping accuracy " << accuracy << ": " << set.statements << " statements, " << table.templates.size()
            << " templates, seed " << seed << "\n";
  Explain(set, statements, shown);
  return accuracy;
}

TEST(TemplateGrouping, TheMeasureItself) {
  LabelledSet set;
  set.truth = {0, 0, 1, 1};
  for (const uint32_t id : {1u, 1u, 2u, 3u}) {
    set.store.logs.emplace_back();
    set.store.logs.back().template_id = id;
  }
  EXPECT_DOUBLE_EQ(GroupingAccuracy(set.store, set.truth), 0.5);  // the second statement is split
  set.store.logs[3].template_id = 2;
  EXPECT_DOUBLE_EQ(GroupingAccuracy(set.store, set.truth), 1);
  set.store.logs[1].template_id = 2;
  EXPECT_DOUBLE_EQ(GroupingAccuracy(set.store, set.truth), 0);
}

TEST(TemplateGrouping, StatementsOfTwelveFormats) {
  std::set<trace::LogSource> formats;
  for (const Statement& statement : TuningStatements()) formats.insert(statement.source);
  EXPECT_EQ(formats.size(), 12u);
  EXPECT_GE(Measure(TuningStatements(), 1, 40), 0.95);
  EXPECT_GE(Measure(TuningStatements(), 2, 0), 0.95);
}

TEST(TemplateGrouping, StatementsOfOtherFormats) {
  EXPECT_GE(Measure(HeldOutStatements(), 1, 40), 0.85);
}

}  // namespace
}  // namespace teller::logs
