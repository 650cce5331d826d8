#include "trace/store.hpp"

#include <gtest/gtest.h>

#include "trace/fault_class.hpp"

namespace teller::trace {
namespace {

TEST(SparseColumn, FindsByRow) {
  SparseColumn<int> column;
  column.Append(2, 20);
  column.Append(5, 50);
  column.Append(5, 51);
  EXPECT_EQ(column.Find(1), nullptr);
  ASSERT_NE(column.Find(2), nullptr);
  EXPECT_EQ(*column.Find(2), 20);
  EXPECT_EQ(column.FindAll(5).size(), 2u);
  EXPECT_EQ(column.LowerBound(3), 1u);
}

TEST(FaultClass, NamesRoundTrip) {
  for (int i = 0; i < kFaultClasses; ++i) {
    const auto fault = static_cast<FaultClass>(i);
    EXPECT_EQ(FaultClassFromName(Name(fault)), fault);
    EXPECT_FALSE(FirstAction(fault).empty());
  }
  EXPECT_FALSE(FaultClassFromName("NO_SUCH_CLASS").has_value());
}

}  // namespace
}  // namespace teller::trace
