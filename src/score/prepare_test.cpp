#include "score/prepare.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace teller::score {
namespace {

namespace fs = std::filesystem;

TEST(Prepare, EndsWhereEndsOfChildrenAreIgnored) {
  const fs::path work = fs::temp_directory_path() / ("teller_prepare_" + std::to_string(getpid()));
  Truth truth;
  truth.folder = (work / "no-case").string();
  PrepareOptions options;
  options.work = work.string();
  const auto told = PrepareCases({truth}, {"case-00000"}, options);
  ASSERT_TRUE(told);
  EXPECT_FALSE(told->front().problem.empty());
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  EXPECT_FALSE(PrepareCases({truth}, {"case-00000"}, options));
  std::signal(SIGCHLD, before);
  fs::remove_all(work);
}

}  // namespace
}  // namespace teller::score
