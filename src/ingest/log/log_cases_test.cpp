// Drives the case files in tests/cases/logs; their README says how they are written.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "ingest/log/log_reader.hpp"
#include "ingest/log/stamp.hpp"

namespace teller::ingest {
namespace {

using trace::LogRecord;

struct Expected {
  std::string source;
  std::string level;
  std::string message;
  std::map<std::string, std::string> fields;
  std::string written;
};

struct Block {
  std::string place;
  std::string log;
  std::vector<Expected> records;
};

std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 >= text.size()) {
      out.push_back(text[i]);
      continue;
    }
    const char c = text[++i];
    if (c == 'x') {
      out.push_back(static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16)));
      i += 2;
    } else {
      out.push_back(c == 'e' ? '\x1b' : c == 'r' ? '\r' : c == 'n' ? '\n' : c);
    }
  }
  return out;
}

/// The next word, or text in double quotes.
std::string TakeWord(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  std::string out;
  bool quoted = false;
  while (!text.empty() && (quoted || text.front() != ' ')) {
    if (text.front() == '"') {
      quoted = !quoted;
    } else {
      out.push_back(text.front());
    }
    text.remove_prefix(1);
  }
  return out;
}

Expected ReadExpected(const std::string& line) {
  Expected out;
  out.written = line;
  const size_t bar = line.find(" |");
  std::string_view head = std::string_view(line).substr(0, bar);
  if (bar + 3 <= line.size()) out.message = Unescape(std::string_view(line).substr(bar + 3));
  out.source = TakeWord(head);
  out.level = TakeWord(head);
  while (!head.empty()) {
    const std::string word = TakeWord(head);
    const size_t equal = word.find('=');
    if (equal != std::string::npos) out.fields[word.substr(0, equal)] = word.substr(equal + 1);
  }
  return out;
}

std::vector<Block> ReadCases(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<Block> blocks(1);
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    Block& block = blocks.back();
    if (line.empty()) {
      if (!block.log.empty()) blocks.emplace_back();
    } else if (line[0] == '>') {
      if (block.log.empty()) block.place = path.filename().string() + ":" + std::to_string(number);
      block.log += Unescape(std::string_view(line).substr(std::min<size_t>(2, line.size()))) + "\n";
    } else if (line[0] == '=') {
      block.records.push_back(ReadExpected(line.substr(2)));
    } else {
      EXPECT_EQ(line[0], '#') << path << ":" << number;
    }
  }
  if (blocks.back().log.empty()) blocks.pop_back();
  return blocks;
}

std::string Open(uint8_t bits) {
  std::string out;
  const auto add = [&](unsigned bit, const char* name) {
    if ((bits & bit) == 0) return;
    if (!out.empty()) out += ',';
    out += name;
  };
  add(trace::kYearOpen, "year");
  add(trace::kDateOpen, "date");
  add(trace::kZoneOpen, "zone");
  add(trace::kFractionOpen, "fraction");
  add(trace::kStartOpen, "start");
  return out.empty() ? "-" : out;
}

std::string OrDash(const std::string& text) {
  return text.empty() ? "-" : text;
}

/// A field of a record as text; statistics are compared elsewhere.
std::string FieldText(const LogRecord& record, const std::string& key) {
  if (key == "process") return OrDash(record.process);
  if (key == "logger") return OrDash(record.logger);
  if (key == "request") return OrDash(record.request);
  if (key == "exception") return OrDash(record.exception);
  if (key == "lines") return std::to_string(record.lines);
  if (key == "open") return Open(record.stamp_open);
  if (key == "pid") return record.pid ? std::to_string(*record.pid) : "-";
  if (key == "rank") return record.rank ? std::to_string(*record.rank) : "-";
  return "no such key";
}

void CheckField(const LogRecord& record, const std::string& key, const std::string& value) {
  if (key == "at") {
    log::Cursor c(value);
    log::Stamp stamp;
    ASSERT_TRUE(log::ReadDateTime(c, stamp) && c.done()) << value;
    EXPECT_EQ(record.at, stamp.at);
  } else if (key.substr(0, 5) == "stat.") {
    double found = NAN;
    for (const auto& [name, number] : record.statistics) {
      if (name == key.substr(5)) found = number;
    }
    if (value == "-") {
      EXPECT_TRUE(std::isnan(found)) << key;
    } else {
      EXPECT_NEAR(found, std::stod(value), 1e-9 * std::max(1.0, std::abs(found))) << key;
    }
  } else {
    EXPECT_EQ(FieldText(record, key), value) << key;
  }
}

TEST(LogCases, EveryFormatReadsAsItsFileSays) {
  const std::filesystem::path root = "tests/cases/logs";
  ASSERT_TRUE(std::filesystem::exists(root)) << "run from the root of the project";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  size_t blocks = 0;
  for (const auto& path : files) {
    for (const Block& block : ReadCases(path)) {
      SCOPED_TRACE(block.place);
      trace::Store store;
      store.files.emplace_back();
      auto source = base::OpenMemory(block.log);
      ASSERT_TRUE(ReadLog(*source, trace::FileRow(0), store, {}).ok());
      const trace::File& file = store.files[0];
      EXPECT_EQ(file.records_read, file.log_records + file.repaired_away + file.dropped);
      EXPECT_EQ(store.logs.size(), block.records.size());
      for (size_t i = 0; i < std::min(store.logs.size(), block.records.size()); ++i) {
        const LogRecord& record = store.logs[i];
        const Expected& expected = block.records[i];
        SCOPED_TRACE(expected.written);
        EXPECT_EQ(Name(record.source), expected.source);
        EXPECT_EQ(Name(record.level), expected.level);
        EXPECT_EQ(record.message, expected.message);
        for (const auto& [key, value] : expected.fields) CheckField(record, key, value);
      }
      ++blocks;
    }
  }
  EXPECT_GT(blocks, 50u);
}

}  // namespace
}  // namespace teller::ingest
