#include "base/guard.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace teller::base {
namespace {

namespace fs = std::filesystem;

class GuardTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("teller_guard_" + std::to_string(getpid()));
    fs::create_directories(root_ / "half" / "deep");
  }
  void TearDown() override { fs::remove_all(root_); }

  /// A child of guarded work that would live for ever, noted in a file.
  pid_t StartSleeper() const {
    const pid_t child = StartGuarded();
    while (child == 0) pause();
    std::ofstream(root_ / "child") << child;
    return child;
  }
  /// True when it has ended; nobody may have collected it yet.
  bool Ended() const {
    pid_t child = 0;
    std::ifstream(root_ / "child") >> child;
    for (int i = 0; child > 0 && i < 500; ++i) {
      std::ifstream in("/proc/" + std::to_string(child) + "/stat");
      std::string line;
      if (!std::getline(in, line) || line.find(") Z ") != std::string::npos) return true;
      usleep(10'000);
    }
    return false;
  }

  /// A daemon: its parent has gone, and it has a session of its own. Returns when it is noted.
  void StartDaemon() const {
    const pid_t child = StartGuarded();
    if (child == 0) {
      if (fork() == 0) {
        setsid();
        std::ofstream(root_ / "new") << getpid();
        fs::rename(root_ / "new", root_ / "child");
        for (;;) pause();
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    while (!fs::exists(root_ / "child")) usleep(1'000);  // until it has its session the daemon is of the child's group
    EndGuarded(child);
  }

  fs::path root_;
};

TEST_F(GuardTest, NothingIsLeftOfWorkThatEnds) {
  const auto end = RunGuarded([&] {
    GuardFolder((root_ / "half").string());
    StartSleeper();
    return 7;
  });
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, 7);
  EXPECT_EQ(end->signal, 0);
  EXPECT_FALSE(end->interrupted);
  EXPECT_FALSE(fs::exists(root_ / "half"));
  EXPECT_TRUE(Ended());
}

TEST_F(GuardTest, NothingIsLeftOfWorkThatDies) {
  for (const int number : {SIGKILL, SIGTERM}) {
    fs::create_directories(root_ / "half" / "deep");
    const auto end = RunGuarded([&] {
      GuardFolder((root_ / "half").string());
      StartSleeper();
      raise(number);
      return 0;
    });
    ASSERT_TRUE(end);
    EXPECT_EQ(end->signal, number);
    EXPECT_EQ(end->interrupted, number == SIGTERM);
    EXPECT_FALSE(fs::exists(root_ / "half"));
    EXPECT_TRUE(Ended());
  }
}

TEST_F(GuardTest, WhatHasASessionOfItsOwnEndsToo) {
  for (const int number : {0, SIGKILL}) {
    fs::remove(root_ / "child");
    const auto end = RunGuarded([&] {
      StartDaemon();
      if (number != 0) raise(number);
      return 7;
    });
    ASSERT_TRUE(end);
    EXPECT_EQ(end->signal, number);
    EXPECT_EQ(end->status, number == 0 ? 7 : 0);
    pid_t child = 0;
    std::ifstream(root_ / "child") >> child;
    ASSERT_GT(child, 0);
    EXPECT_NE(kill(child, 0), 0) << "it has been collected, too";
  }
}

TEST_F(GuardTest, WhatHasASessionOfItsOwnEndsWithWhoeverAskedForTheWork) {
  const pid_t asker = fork();
  if (asker == 0) {
    const auto end = RunGuarded([&] {
      StartDaemon();
      std::ofstream(root_ / "ready") << "yes";
      for (;;) pause();
      return 0;
    });
    _exit(end ? 0 : 1);
  }
  for (int i = 0; i < 1'000 && !fs::exists(root_ / "ready"); ++i) usleep(10'000);
  kill(asker, SIGKILL);
  int status = 0;
  waitpid(asker, &status, 0);
  EXPECT_TRUE(Ended());
}

TEST_F(GuardTest, WhatGotItsNameStays) {
  const auto end = RunGuarded([&] {
    GuardFolder((root_ / "half").string());
    fs::rename(root_ / "half", root_ / "whole");
    return 0;
  });
  ASSERT_TRUE(end);
  EXPECT_TRUE(fs::exists(root_ / "whole" / "deep"));
}

TEST_F(GuardTest, OutsideOfGuardedWorkNothingIsRemoved) {
  GuardFolder((root_ / "half").string());
  const pid_t child = StartSleeper();
  EXPECT_EQ(getpgid(child), child);
  EndGuarded(child);
  EXPECT_TRUE(Ended());
  kill(child, SIGKILL);  // so that a failure does not wait for ever
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(fs::exists(root_ / "half"));
}

TEST_F(GuardTest, AFolderIsGuardedBeforeItIsThere) {
  const auto end = RunGuarded([&] {
    GuardFolder((root_ / "new").string());
    fs::create_directory(root_ / "new");
    raise(SIGKILL);
    return 0;
  });
  ASSERT_TRUE(end);
  EXPECT_FALSE(fs::exists(root_ / "new"));
}

TEST_F(GuardTest, AFolderThatIsNotOursStays) {
  const auto end = RunGuarded([&] {
    GuardFolder((root_ / "half").string());
    LeaveFolder((root_ / "half").string());
    return 0;
  });
  ASSERT_TRUE(end);
  EXPECT_TRUE(fs::exists(root_ / "half" / "deep"));
}

TEST_F(GuardTest, WorkEndsAlsoWhereEndsOfChildrenAreIgnored) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const auto end = RunGuarded([] {
    const pid_t child = StartGuarded();
    if (child == 0) _exit(5);
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  });
  EXPECT_EQ(std::signal(SIGCHLD, before), SIG_IGN);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, 5);
}

}  // namespace
}  // namespace teller::base
