#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "ingest/run.hpp"

namespace teller::ingest {

/// A folder of files that lives as long as the test.
class TestFolder {
 public:
  TestFolder() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            ("teller_" + std::to_string(::getpid()) + "_" + info->test_suite_name() + "_" + info->name());
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }

  std::string path() const { return path_.string(); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

inline std::string Gzip(const std::string& text) {
  std::string out(compressBound(text.size()) + 64, '\0');
  z_stream z = {};
  EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

/// Reads one trace; checks conservation.
inline trace::Store ReadText(const std::string& text, const RunOptions& options = {}) {
  const TestFolder folder;
  auto store = ReadRun({.paths = {folder.Write("trace.json", text)}, .logs = {}}, options);
  EXPECT_TRUE(store.has_value()) << (store.has_value() ? "" : store.error().Text());
  if (!store.has_value()) return {};
  const auto& file = store->files.front();
  EXPECT_EQ(file.records_read, file.spans + file.instants + file.counters + file.flows + file.metadata +
                                   file.repaired_away + file.dropped);
  EXPECT_EQ(file.spans, store->spans.size());
  return std::move(*store);
}

/// A span event.
inline std::string Event(const std::string& name, const std::string& ts, const std::string& dur,
                         const std::string& more = "") {
  return R"({"ph":"X","cat":"cpu_op","name":")" + name + R"(","pid":1,"tid":2,"ts":)" + ts + R"(,"dur":)" + dur + more +
         "}";
}

}  // namespace teller::ingest
