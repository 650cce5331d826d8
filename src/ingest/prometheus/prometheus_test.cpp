#include "ingest/prometheus/prometheus.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <tuple>

#include "ingest/prometheus/exposition.hpp"

namespace teller::ingest {
namespace {

using trace::CounterKind;
using trace::kNoTime;

trace::Store ReadText(std::string_view text, const std::string& path = "metrics.txt", bool usable = true) {
  trace::Store store;
  store.files.emplace_back();
  store.files[0].path = path;
  auto source = base::OpenMemory(text);
  EXPECT_EQ(ReadPrometheus(*source, trace::FileRow(0), store, {}).ok(), usable);
  const auto& file = store.files[0];
  EXPECT_EQ(file.records_read, file.counters + file.metadata + file.dropped);
  EXPECT_EQ(file.counters, store.counters.size());
  EXPECT_EQ(file.bytes, text.size());
  return store;
}

const trace::CounterSeries& SeriesOf(const trace::Store& store, size_t sample) {
  return store.counter_series[store.counters[sample].series.value()];
}

TEST(Prometheus, ReadsMarkedScrapes) {
  const auto store = ReadText(
      "# scrape 1795986612032631000\n"
      "engine:running{engine=\"0\",model=\"m\"} 3.0\n"
      "engine:tokens_total{engine=\"0\"} 10\n"
      "\n"
      "# scrape 1795986613054332496\n"
      "engine:running{model=\"m\",engine=\"0\"} 4.0\n"
      "engine:tokens_total{engine=\"0\"} 25\n");
  ASSERT_EQ(store.counter_series.size(), 2u);
  ASSERT_EQ(store.counters.size(), 4u);
  EXPECT_EQ(store.counters[0].at, 1795986612032631000);
  EXPECT_EQ(store.counters[2].at, 1795986613054332496);
  EXPECT_EQ(store.counters[2].series, store.counters[0].series);  // the order of labels means nothing
  EXPECT_EQ(store.counters[2].scrape, 1u);
  EXPECT_EQ(store.counters[3].value, 25);
  EXPECT_EQ(SeriesOf(store, 0).kind, CounterKind::kGauge);
  EXPECT_EQ(SeriesOf(store, 1).kind, CounterKind::kCumulative);
  EXPECT_EQ(SeriesOf(store, 0).labels, (prometheus::Labels{{"engine", "0"}, {"model", "m"}}));
}

TEST(Prometheus, BeforeAndAfterAreTwoScrapesWithoutTimes) {
  const auto store = ReadText("# before (only series that changed)\na_total 1\n# after\na_total 5\nb 2\n");
  ASSERT_EQ(store.counters.size(), 3u);
  for (const auto& sample : store.counters) EXPECT_EQ(sample.at, kNoTime);
  EXPECT_EQ(store.counters[0].scrape, 0u);
  EXPECT_EQ(store.counters[1].scrape, 1u);
  EXPECT_EQ(store.counters[2].scrape, 1u);
  EXPECT_EQ(store.diagnostics.Count("prometheus.no-times"), 1u);
}

TEST(Prometheus, ScrapesPutTogetherWithoutMarksAreToldByARepeatedSeries) {
  const auto store = ReadText("# TYPE up gauge\nup 1\nq 2\n# TYPE up gauge\nup 0\nq 3\n");
  ASSERT_EQ(store.counters.size(), 4u);
  EXPECT_EQ(store.counters[1].scrape, 0u);
  EXPECT_EQ(store.counters[2].scrape, 1u);
  EXPECT_EQ(store.counters[3].scrape, 1u);
}

TEST(Prometheus, ASeriesTwiceInAMarkedScrapeCountsOnce) {
  const auto store = ReadText("# scrape 1795986612032631000\na 1\na 2\n");
  ASSERT_EQ(store.counters.size(), 1u);
  EXPECT_EQ(store.counters[0].value, 1);
  EXPECT_EQ(store.diagnostics.Count("prometheus.twice"), 1u);
}

TEST(Prometheus, TimesOfSamples) {
  // Milliseconds of the text format, seconds of OpenMetrics, then a history of one series.
  const auto store = ReadText("a 1 1795986612032\nb 2 1795986612.5\n# EOF\na 3 1795986613032\na 4 1795986614032\n");
  ASSERT_EQ(store.counters.size(), 4u);
  EXPECT_EQ(store.counters[0].at, 1795986612032000000);
  EXPECT_EQ(store.counters[1].at, 1795986612500000000);
  EXPECT_EQ(store.counters[2].at, 1795986613032000000);
  EXPECT_EQ(store.counters[3].at, 1795986614032000000);
  EXPECT_EQ(store.counters[2].scrape, 1u);
  EXPECT_EQ(store.counters[3].scrape, 2u);
}

TEST(Prometheus, TheNameOfAFileOfOneScrapeTellsItsTime) {
  const auto at = [](const std::string& path, std::string_view text) {
    return ReadText(text, path).counters.front().at;
  };
  EXPECT_EQ(at("x/scrape_1795986612.prom", "a 1\n"), 1795986612000000000);
  EXPECT_EQ(at("x/scrape-1795986612032631000.txt", "a 1\n"), 1795986612032631000);
  EXPECT_EQ(at("x/1795986612/scrape.txt", "a 1\n"), kNoTime);
  EXPECT_EQ(at("x/scrape_20261130.txt", "a 1\n"), kNoTime);
  EXPECT_EQ(at("x/1795986612_1795986613.txt", "a 1\n"), kNoTime);
  EXPECT_EQ(at("x/scrape_1795986612.prom", "# before\na 1\n# after\na 2\n"), kNoTime);
}

TEST(Prometheus, KindsFromTypesElseFromNames) {
  const auto store = ReadText(
      "# HELP ttft Time to first token\n"
      "# TYPE ttft histogram\n"
      "ttft_bucket{le=\"0.1\"} 1\nttft_bucket{le=\"+Inf\"} 2\nttft_count 2\nttft_sum 0.5\nttft_created 1.7e9\n"
      "# TYPE level_total gauge\nlevel_total 7\n"
      "# TYPE requests counter\nrequests_total 4\n"
      "# TYPE tgi_request_count counter\ntgi_request_count 3\n"
      "# TYPE rpc summary\nrpc{quantile=\"0.5\"} 1\nrpc_count 2\nrpc_sum 3\n"
      "worker_count 3\n"
      "lat_count 3\nlat_sum 4\n"
      "x_total 5\n");
  std::map<std::string, CounterKind> kinds;
  for (const auto& series : store.counter_series) kinds[series.name] = series.kind;
  for (const char* name : {"ttft_bucket", "ttft_count", "ttft_sum", "requests_total", "tgi_request_count", "rpc_count",
                           "rpc_sum", "lat_count", "lat_sum", "x_total"}) {
    EXPECT_EQ(kinds.at(name), CounterKind::kCumulative) << name;
  }
  for (const char* name : {"ttft_created", "level_total", "rpc", "worker_count"}) {
    EXPECT_EQ(kinds.at(name), CounterKind::kGauge) << name;
  }
}

TEST(Prometheus, OddValuesAndLabels) {
  const auto store = ReadText(
      "a NaN\nb +Inf\nc -Inf\nd 1e400\ne -3.5e-7\nf{} 1\n"
      "g{p=\"C:\\\\dir\",q=\"say \\\"hi\\\"\\n\",r=\"a,b}=\",} 2\n"
      "{\"my.name\", unit=\"s\"} 4\n"
      "h_bucket{le=\"1\"} 3 # {trace_id=\"ab\"} 0.67 1795986612.1\n");
  ASSERT_EQ(store.counters.size(), 9u);
  EXPECT_TRUE(std::isnan(store.counters[0].value));
  EXPECT_EQ(store.counters[1].value, std::numeric_limits<double>::infinity());
  EXPECT_EQ(store.counters[2].value, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(store.counters[3].value, std::numeric_limits<double>::infinity());
  EXPECT_EQ(store.counters[4].value, -3.5e-7);
  EXPECT_EQ(SeriesOf(store, 6).labels, (prometheus::Labels{{"p", "C:\\dir"}, {"q", "say \"hi\"\n"}, {"r", "a,b}="}}));
  EXPECT_EQ(SeriesOf(store, 7).name, "my.name");
  EXPECT_EQ(store.counters[8].value, 3);
  EXPECT_EQ(store.counters[8].at, kNoTime);
}

TEST(Prometheus, BrokenLinesAreCounted) {
  const auto store =
      ReadText("a 1\n1b 2\nc{x=\"1\" 3\nd{x=1} 4\ne\nf one\ng 1 2 3\n{x=\"1\"} 5\nh{x=\"1\",x=\"2\"} 6\nz 9");
  EXPECT_EQ(store.counters.size(), 2u);
  EXPECT_EQ(store.files[0].dropped, 8u);
  EXPECT_EQ(store.diagnostics.Count("prometheus.bad-line"), 8u);
  EXPECT_TRUE(store.diagnostics.LostInput());
}

TEST(Prometheus, AHostileTimeIsNoDate) {
  const auto store = ReadText("# scrape 99999999999999999999999\na 1\nb 2 -5\n");
  ASSERT_EQ(store.counters.size(), 2u);
  EXPECT_EQ(store.counters[0].at, kNoTime);
  EXPECT_EQ(store.diagnostics.Count("prometheus.bad-time"), 2u);
}

TEST(Prometheus, ALineBeyondTheLimitIsLeftOut) {
  const auto store = ReadText("a 1\nb{x=\"" + std::string(100'000, 'y') + "\"} 2\n");
  EXPECT_EQ(store.counters.size(), 1u);
  EXPECT_EQ(store.diagnostics.Count("prometheus.long-line"), 1u);
}

TEST(Prometheus, RefusesWhatHoldsNoSample) {
  ReadText("# HELP a b\n", "m", false);
  ReadText("", "m", false);
  EXPECT_FALSE(LooksLikePrometheus("INFO 2026-11-30 server started\nINFO it runs\n", true));
  EXPECT_FALSE(LooksLikePrometheus("", true));
  EXPECT_TRUE(LooksLikePrometheus("# TYPE a counter\n", true));
  EXPECT_TRUE(LooksLikePrometheus("a{b=\"c\"} 1", true));
  EXPECT_FALSE(LooksLikePrometheus("a{b=\"c\"} 1", false));  // may be cut
}

/// The same values in whatever pieces the bytes arrive.
TEST(Prometheus, PiecesOfTheInputDoNotMatter) {
  class Trickle : public base::ByteSource {
   public:
    explicit Trickle(std::string_view text) : text_(text) {}
    base::Result<size_t> Read(char* into, size_t n) override {
      n = std::min({n, text_.size(), size_t{3}});
      text_.copy(into, n);
      text_.remove_prefix(n);
      return n;
    }

   private:
    std::string_view text_;
  };
  const std::string text = "# scrape 1795986612032631000\r\na{b=\"c\"} 1\r\n# TYPE d counter\r\nd 2";
  const auto whole = ReadText(text);
  trace::Store store;
  store.files.emplace_back();
  Trickle source(text);
  ASSERT_TRUE(ReadPrometheus(source, trace::FileRow(0), store, {}).ok());
  ASSERT_EQ(store.counters.size(), whole.counters.size());
  for (size_t i = 0; i < store.counters.size(); ++i) {
    EXPECT_EQ(store.counters[i].value, whole.counters[i].value);
    EXPECT_EQ(store.counters[i].at, whole.counters[i].at);
    EXPECT_EQ(SeriesOf(store, i).name, SeriesOf(whole, i).name);
  }
}

/// Another way to read the lab's files: split at blanks, without any of the reader's code.
TEST(Prometheus, ReadsTheRealScrapes) {
  const std::filesystem::path root = "../shared/data/lab";
  if (!std::filesystem::exists(root)) {
    GTEST_SKIP() << "the real scrapes (../shared/data) are not here";
  }
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().filename() != "metrics.txt") continue;
    ++files;
    std::ifstream in(entry.path());
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto store = ReadText(text, entry.path().string());
    EXPECT_EQ(store.files[0].dropped, 0u) << entry.path();
    std::istringstream lines(text);
    std::string line;
    size_t sample = 0;
    trace::Nanos at = kNoTime;
    while (std::getline(lines, line)) {
      if (line.rfind("# scrape ", 0) == 0) at = std::stoll(line.substr(9));
      if (line.empty() || line[0] == '#') continue;
      const size_t blank = line.rfind(' ');
      ASSERT_LT(sample, store.counters.size()) << entry.path();
      EXPECT_EQ(store.counters[sample].value, std::stod(line.substr(blank + 1))) << line;
      EXPECT_EQ(store.counters[sample].at, at);
      const auto& series = SeriesOf(store, sample);
      EXPECT_EQ(series.name, line.substr(0, std::min(blank, line.find('{'))));
      for (const auto& [key, value] : series.labels) {
        EXPECT_NE(line.find(key + "=\"" + value + "\""), std::string::npos) << line;
      }
      ++sample;
    }
    EXPECT_EQ(sample, store.counters.size());
  }
  EXPECT_GE(files, 20u);
}

}  // namespace
}  // namespace teller::ingest
