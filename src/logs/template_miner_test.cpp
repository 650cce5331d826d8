#include "logs/template_miner.hpp"

#include <gtest/gtest.h>

#include "logs/mask.hpp"

namespace teller::logs {
namespace {

using Kind = trace::LogParameter::Kind;

trace::Store StoreOf(const std::vector<std::string>& messages) {
  trace::Store store;
  for (const auto& message : messages) {
    trace::LogRecord record;
    record.message = message;
    store.logs.push_back(std::move(record));
  }
  return store;
}

TEST(Mask, TypesWhatVariesByForm) {
  std::vector<Hole> holes;
  EXPECT_EQ(MaskWord("elapsed=0.23", holes), "elapsed=<float>");
  EXPECT_EQ(MaskWord("27.2ms", holes), "<dur>");
  EXPECT_EQ(MaskWord("0x7fc399200000", holes), "<hex>");
  EXPECT_EQ(MaskWord("10.0.0.1:4711", holes), "<addr>");
  EXPECT_EQ(MaskWord("/srv/run/traces", holes), "<path>");
  EXPECT_EQ(MaskWord("cmpl-4f5b2c9e-aa11-4c1d-9f00-112233445566,", holes), "cmpl-<id>,");
  EXPECT_EQ(MaskWord("(1,300", holes), "(<int>");
  EXPECT_EQ(MaskWord("token/s):", holes), "token/s):");
  ASSERT_EQ(holes.size(), 7u);
  EXPECT_EQ(holes[1].kind, Kind::kDuration);
  EXPECT_EQ(holes[6].text, "1,300");
}

TEST(TemplateMiner, JoinsMessagesThatDifferInValues) {
  auto store =
      StoreOf({"slot release: id 3 | task 1 | stop processing: n_tokens = 75", "loading model a.gguf now please",
               "slot release: id 0 | task 77 | stop processing: n_tokens = 1200", "loading model b.gguf now please"});
  const auto table = MineTemplates(store);
  ASSERT_EQ(table.templates.size(), 2u);
  EXPECT_EQ(table.templates[0].text, "slot release: id <int> | task <int> | stop processing: n_tokens = <int>");
  EXPECT_EQ(table.templates[0].count, 2u);
  EXPECT_EQ(table.templates[1].text, "loading model <*> now please");
  EXPECT_EQ(store.logs[2].template_id, 1u);
  ASSERT_EQ(store.logs[2].parameters.size(), 3u);
  EXPECT_EQ(store.logs[2].parameters[1].text, "77");
  ASSERT_EQ(store.logs[1].parameters.size(), 1u);  // found to vary only later
  EXPECT_EQ(store.logs[1].parameters[0].kind, Kind::kText);
  EXPECT_EQ(store.logs[1].parameters[0].text, "a.gguf");
}

TEST(TemplateMiner, ReadsQuotationsListsAndFreeText) {
  auto store = StoreOf({"Received request cmpl-4f5b2c9e-0: prompt: 'how are you', n=1, stream=True, ok",
                        "Received request cmpl-aa5b2c9e-0: prompt: 'hi', n=2, stream=False, ok",
                        "sizes [1, 2, 4] ready", "sizes [1, 2, 4, 8, 16] ready", "failed to load model: no such file",
                        "failed to load model: disk on fire right now", "failed to load model: who knows",
                        "failed to load model: timeout"});
  const auto table = MineTemplates(store);
  ASSERT_EQ(table.templates.size(), 3u);
  EXPECT_EQ(table.templates[0].text, "Received request cmpl-<id>: prompt: '<*>', n=<int>, stream=<*>, ok");
  EXPECT_EQ(table.templates[1].text, "sizes [<*>] ready");
  EXPECT_EQ(table.templates[2].text, "failed to load model: <*>");
  EXPECT_EQ(table.templates[2].count, 4u);
  ASSERT_EQ(store.logs[1].parameters.size(), 4u);
  EXPECT_EQ(store.logs[1].parameters[1].text, "hi");
  EXPECT_EQ(store.logs[0].parameters[1].text, "how are you");
  ASSERT_EQ(store.logs[3].parameters.size(), 1u);
  EXPECT_EQ(store.logs[3].parameters[0].text, "1, 2, 4, 8, 16");
  ASSERT_EQ(store.logs[5].parameters.size(), 1u);
  EXPECT_EQ(store.logs[5].parameters[0].text, "disk on fire right now");
}

TEST(TemplateMiner, KeepsStatementsApart) {
  auto store = StoreOf({"Waiting for application startup.", "Waiting for application shutdown.", "n_ctx = 5",
                        "n_batch = 5", "maxBatchSize: 3 of all", "maxBeamWidth: 3 of all"});
  EXPECT_EQ(MineTemplates(store).templates.size(), 6u);
}

TEST(TemplateMiner, HostileMessagesEnd) {
  const std::string quotes(60'000, '\'');
  const std::string open(60'000, '[');
  auto store = StoreOf(
      {"", " ", quotes, open, "x='" + open, std::string(60'000, '='), "a " + quotes + " b", "<*>", "<int> <*>"});
  MineTemplates(store);
  for (const auto& record : store.logs) EXPECT_GT(record.template_id, 0u);
}

TEST(TemplateMiner, IsBoundedAndRepeatable) {
  std::vector<std::string> messages;
  for (int i = 0; i < 200; ++i)
    messages.push_back(std::string(static_cast<size_t>(i % 50 + 1), 'x') +
                       std::string(static_cast<size_t>(i % 7), 'y'));
  auto store = StoreOf(messages);
  MineOptions options;
  options.max_templates = 20;
  const auto table = MineTemplates(store, options);
  EXPECT_EQ(table.templates.size(), 20u);
  EXPECT_GT(table.beyond_limit, 0u);
  uint64_t counted = table.beyond_limit;
  for (const auto& row : table.templates) counted += row.count;
  EXPECT_EQ(counted, messages.size());
  auto again = StoreOf(messages);
  const auto second = MineTemplates(again, options);
  for (size_t i = 0; i < messages.size(); ++i) EXPECT_EQ(again.logs[i].template_id, store.logs[i].template_id);
  for (size_t i = 0; i < table.templates.size(); ++i) EXPECT_EQ(second.templates[i].text, table.templates[i].text);
}

}  // namespace
}  // namespace teller::logs
