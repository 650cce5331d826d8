#include "ingest/prometheus/join.hpp"

#include <gtest/gtest.h>

#include <map>

#include "ingest/prometheus/prometheus.hpp"

namespace teller::ingest {
namespace {

/// Files read in the order given, then joined.
trace::Store Joined(const std::vector<std::pair<std::string, std::string>>& files) {
  trace::Store store;
  for (const auto& [path, text] : files) {
    const auto row = trace::FileRow(static_cast<uint32_t>(store.files.size()));
    store.files.push_back({.path = path});
    auto source = base::OpenMemory(text);
    EXPECT_TRUE(ReadPrometheus(*source, row, store, {}).ok());
  }
  const size_t samples = store.counters.size();
  JoinScrapes(store);
  EXPECT_EQ(store.counters.size(), samples) << "no sample is lost";
  for (const auto& sample : store.counters) EXPECT_LT(sample.series.value(), store.counter_series.size());
  return store;
}

std::string Sample(int tokens, int running, const std::string& more = "") {
  return "# TYPE tokens counter\ntokens_total{e=\"0\"} " + std::to_string(tokens) + "\nrunning " +
         std::to_string(running) + "\n" + more;
}
std::string At(int second, const std::string& text) {
  return "# scrape 17959866" + std::to_string(second) + "000000000\n" + text;
}

/// Values of a series by scrape.
std::map<uint32_t, double> Values(const trace::Store& store, const std::string& name) {
  std::map<uint32_t, double> out;
  for (const auto& sample : store.counters) {
    if (store.counter_series[sample.series.value()].name == name) out[sample.scrape] = sample.value;
  }
  return out;
}

const std::map<uint32_t, double> kInOrder = {{0, 10}, {1, 20}, {2, 30}};

TEST(JoinScrapes, FilesThatDifferInTheirTimeAreOneTarget) {
  const auto store = Joined({{"m/metrics_1795986632.prom", Sample(30, 3)},
                             {"m/metrics_1795986612.prom", Sample(10, 1)},
                             {"m/metrics_1795986622.prom", Sample(20, 2)}});
  EXPECT_EQ(store.counter_series.size(), 2u);
  EXPECT_EQ(Values(store, "tokens_total"), kInOrder);
  EXPECT_EQ(store.counter_series[0].file, trace::FileRow(1)) << "of the earliest";
  EXPECT_EQ(store.counter_series[0].kind, trace::CounterKind::kCumulative);
  EXPECT_EQ(store.diagnostics.Count("prometheus.joined"), 3u);
}

TEST(JoinScrapes, ARestartOfAStampedTargetIsStillThatTarget) {
  const auto store = Joined({{"metrics_1795986612.prom", Sample(10, 1)}, {"metrics_1795986622.prom", Sample(2, 2)}});
  EXPECT_EQ(Values(store, "tokens_total"), (std::map<uint32_t, double>{{0, 10}, {1, 2}}));
}

TEST(JoinScrapes, OrdinalsJoinByTheirMarksWhereNothingFalls) {
  // By name scrape_10 stands before scrape_2: time decides.
  const auto store = Joined({{"scrape_10.prom", At(32, Sample(30, 1))},
                             {"scrape_2.prom", At(12, Sample(10, 9))},
                             {"scrape_9.prom", At(22, Sample(20, 4))}});
  EXPECT_EQ(store.counter_series.size(), 2u);
  EXPECT_EQ(Values(store, "tokens_total"), kInOrder);
}

TEST(JoinScrapes, AnEqualStartProvesTwoFilesToo) {
  const std::string start = "process_start_time_seconds 1795986000.5\n";
  EXPECT_EQ(Joined({{"s1.prom", At(12, Sample(1, 1, start))}, {"s2.prom", At(13, Sample(2, 1, start))}})
                .counter_series.size(),
            3u);
  const std::string other = "process_start_time_seconds 1795986001.5\n";
  EXPECT_EQ(Joined({{"s1.prom", At(12, Sample(1, 1, start))}, {"s2.prom", At(13, Sample(2, 1, other))}})
                .counter_series.size(),
            6u);
}

TEST(JoinScrapes, ReplicasAreNotJoined) {
  // A counter falls; a name tells a rank; two files only; equal times; other folders; no times at all.
  const std::vector<std::vector<std::pair<std::string, std::string>>> cases = {
      {{"r1.prom", At(12, Sample(30, 1))}, {"r2.prom", At(13, Sample(20, 1))}, {"r3.prom", At(14, Sample(40, 1))}},
      {{"rank0.prom", At(12, Sample(1, 1))},
       {"rank1.prom", At(13, Sample(2, 1))},
       {"rank2.prom", At(14, Sample(3, 1))}},
      {{"s1.prom", At(12, Sample(1, 1))}, {"s2.prom", At(13, Sample(2, 1))}},
      {{"s1.prom", At(12, Sample(1, 1))}, {"s2.prom", At(12, Sample(2, 1))}, {"s3.prom", At(13, Sample(3, 1))}},
      {{"a/m_1795986612.prom", Sample(1, 1)}, {"b/m_1795986622.prom", Sample(2, 1)}},
      {{"before.prom", Sample(1, 1)}, {"after.prom", Sample(2, 1)}},
  };
  for (const auto& files : cases) {
    const auto store = Joined(files);
    EXPECT_EQ(store.counter_series.size(), 2 * files.size()) << files.front().first;
    EXPECT_EQ(store.diagnostics.Count("prometheus.joined"), 0u);
  }
}

TEST(JoinScrapes, FilesOfSeveralScrapesStayAsTheyAre) {
  const std::string two = At(12, Sample(1, 1)) + At(13, Sample(2, 1));
  EXPECT_EQ(Joined({{"m_1795986612.prom", two}, {"m_1795986622.prom", Sample(3, 1)}}).counter_series.size(), 4u);
}

}  // namespace
}  // namespace teller::ingest
