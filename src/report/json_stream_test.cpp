#include "report/json_stream.hpp"

#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "report/diagnosis_json.hpp"

namespace teller::report {
namespace {

using Json = nlohmann::ordered_json;

Json Random(base::Rng& rng, int depth) {
  switch (rng.Below(depth > 3 ? 5u : 7u)) {
    case 0: return nullptr;
    case 1: return rng.Below(2) == 0;
    case 2: return static_cast<int64_t>(rng.Below(1000)) - 500;
    case 3: return static_cast<double>(rng.Below(1000)) / 7;
    case 4: return std::string("line\nbreak \"\x7F\xC3\xA9\xFF ") + std::to_string(rng.Below(10));
    case 5: {
      Json array = Json::array();
      for (uint64_t n = rng.Below(4); n > 0; --n) array.push_back(Random(rng, depth + 1));
      return array;
    }
    default: {
      Json object = Json::object();
      for (uint64_t n = rng.Below(4); n > 0; --n) object["k" + std::to_string(n)] = Random(rng, depth + 1);
      return object;
    }
  }
}

TEST(JsonObjectStream, GivesTheBytesOfTheWhole) {
  base::Rng rng(7);
  for (int round = 0; round < 300; ++round) {
    Json whole = Json::object();
    std::string streamed;
    const Sink sink = [&](std::string_view text) {
      streamed += text;
      return base::Status();
    };
    JsonObjectStream out(sink);
    for (uint64_t members = rng.Below(5); members > 0; --members) {
      const std::string key = "m\n" + std::to_string(members);
      if (rng.Below(2) == 0) {
        whole[key] = Random(rng, 0);
        out.Field(key, whole[key]);
        continue;
      }
      whole[key] = Json::array();
      out.BeginArray(key);
      for (uint64_t n = rng.Below(4); n > 0; --n) {
        whole[key].push_back(Random(rng, 0));
        out.Item(whole[key].back());
      }
      out.EndArray();
    }
    ASSERT_TRUE(out.End().ok());
    ASSERT_EQ(streamed, JsonText(whole));
  }
}

TEST(JsonObjectStream, KeepsLittleAndStopsWhenTheSinkRefuses) {
  size_t largest = 0;
  size_t calls = 0;
  const Sink sink = [&](std::string_view text) {
    largest = std::max(largest, text.size());
    return ++calls < 3 ? base::Status() : base::Status(base::Error{base::Code::kUnreadable, "full"});
  };
  JsonObjectStream out(sink);
  out.BeginArray("a");
  for (int i = 0; i < 100'000; ++i) out.Item("a record of some length");
  EXPECT_FALSE(out.ok());
  out.EndArray();
  EXPECT_FALSE(out.End().ok());
  EXPECT_EQ(calls, 3u);
  EXPECT_LT(largest, 70'000u);
}

}  // namespace
}  // namespace teller::report
