#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/parallel.hpp"
#include "ingest/run.hpp"
#include "tests/real_files.hpp"
#include "tree/launch.hpp"
#include "tree/nesting.hpp"

namespace teller {
namespace {

using trace::SpanKind;

/// An independent reading: the file inflated by zlib, parsed by another JSON library.
struct PlainCount {
  bool is_trace = false;
  uint64_t events = 0;
  std::map<std::string, uint64_t> spans;  // by category
  std::map<std::string, uint64_t> phases;
};

std::string ReadWhole(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");
  std::vector<char> chunk(1u << 20);
  for (int n = 0; (n = gzread(file, chunk.data(), static_cast<unsigned>(chunk.size()))) > 0;) {
    text.append(chunk.data(), static_cast<size_t>(n));
  }
  gzclose(file);
  return text;
}

PlainCount CountPlainly(const std::string& path) {
  PlainCount out;
  const auto json = nlohmann::json::parse(ReadWhole(path), nullptr, false);
  const nlohmann::json* events = &json;
  if (json.is_object()) {
    if (!json.contains("traceEvents")) return out;
    events = &json["traceEvents"];
  }
  if (!events->is_array() || events->empty() || !events->front().contains("ph")) return out;
  out.is_trace = true;
  for (const auto& event : *events) {
    ++out.events;
    const std::string phase = event.value("ph", "");
    ++out.phases[phase];
    if (phase == "X" || phase == "B") ++out.spans[event.value("cat", "")];
  }
  return out;
}

trace::Store ReadAll(const std::string& path, unsigned threads = 0) {
  auto store = ingest::ReadRun({.paths = {path}, .logs = {}}, {.threads = threads});
  EXPECT_TRUE(store.has_value()) << (store.has_value() ? "" : store.error().Text());
  return store.has_value() ? std::move(*store) : trace::Store();
}

uint64_t Phase(const PlainCount& plain, std::initializer_list<const char*> names) {
  uint64_t total = 0;
  for (const char* name : names) {
    if (const auto it = plain.phases.find(name); it != plain.phases.end()) total += it->second;
  }
  return total;
}

TEST(RealFiles, EveryTraceIsConservedAndCountsLikeAPlainParse) {
  TELLER_NEED_REAL_FILES();
  const trace::Store store = ReadAll(RealFiles());
  std::vector<std::map<std::string, uint64_t>> spans(store.files.size());
  for (size_t row = 0; row < store.spans.size(); ++row) {
    const auto file = store.process_of(row).file.value();
    ++spans[file][store.categories[store.spans.category[row]].name];
  }
  std::mutex mutex;  // of gtest's failure list
  std::atomic<int> traces = 0;
  base::ParallelFor(2, store.files.size(), [&](size_t i) {
    const auto& file = store.files[i];
    if (file.path.find(".json") == std::string::npos || file.path.find(".jsonl") != std::string::npos) return;
    const PlainCount plain = CountPlainly(RealFiles() + "/" + file.path);
    const std::lock_guard lock(mutex);
    SCOPED_TRACE(file.path);
    EXPECT_EQ(plain.is_trace, file.kind == "kineto");
    if (!plain.is_trace) return;
    ++traces;
    EXPECT_EQ(file.records_read, plain.events);
    EXPECT_EQ(file.records_read, file.spans + file.instants + file.counters + file.flows + file.metadata +
                                     file.repaired_away + file.dropped);
    EXPECT_EQ(spans[i], plain.spans);
    EXPECT_EQ(file.flows, Phase(plain, {"s", "t", "f"}));
    EXPECT_EQ(file.metadata, Phase(plain, {"M"}));
    EXPECT_EQ(file.instants, Phase(plain, {"i", "I", "R", "n"}));
    EXPECT_EQ(file.dropped, Phase(plain, {""}));  // only the empty elements that close the hook's arrays
  });
  EXPECT_GE(traces, 70);
  EXPECT_FALSE(store.diagnostics.LostInput());
}

TEST(RealFiles, TracksAreContiguousSortedAndOwned) {
  TELLER_NEED_REAL_FILES();
  const trace::Store store = ReadAll(RealFiles() + "/traces");
  size_t covered = 0;
  for (size_t t = 0; t < store.tracks.size(); ++t) {
    const auto& track = store.tracks[t];
    ASSERT_TRUE(track.process.valid());
    covered += track.span_count;
    for (size_t row = track.first_span; row < track.first_span + track.span_count; ++row) {
      ASSERT_EQ(store.spans.track[row].value(), t);
      if (row == track.first_span) continue;
      const auto key = [&store](size_t r) { return std::pair(store.spans.begin[r], -store.spans.end(r)); };
      ASSERT_LE(key(row - 1), key(row));
    }
  }
  EXPECT_EQ(covered, store.spans.size());
}

TEST(RealFiles, SameStoreForAnyThreadCount) {
  TELLER_NEED_REAL_FILES();
  const std::string path = RealFiles() + "/traces/tracelens";
  const trace::Store one = ReadAll(path, 1);
  const trace::Store four = ReadAll(path, 4);
  EXPECT_EQ(one.spans.begin, four.spans.begin);
  EXPECT_EQ(one.spans.duration, four.spans.duration);
  EXPECT_EQ(one.spans.name, four.spans.name);
  EXPECT_EQ(one.spans.track, four.spans.track);
  EXPECT_EQ(one.spans.category, four.spans.category);
  ASSERT_EQ(one.strings.size(), four.strings.size());
  for (uint32_t i = 0; i < one.strings.size(); ++i) {
    ASSERT_EQ(one.strings.Text(base::StringId(i)), four.strings.Text(base::StringId(i)));
  }
  ASSERT_EQ(one.op_args.size(), four.op_args.size());
  for (size_t i = 0; i < one.op_args.size(); ++i) {
    ASSERT_EQ(one.op_args.row(i), four.op_args.row(i));
    ASSERT_EQ(one.op_args.value(i).input_dims, four.op_args.value(i).input_dims);
  }
  EXPECT_EQ(one.flows.size(), four.flows.size());
}

TEST(RealFiles, ArgsBelongToTheSpansThatTheFileGivesThemTo) {
  TELLER_NEED_REAL_FILES();
  const std::string path = RealFiles() + "/traces/tracelens/vllm_b200_eager_tp8_rank.json.gz";
  const trace::Store store = ReadAll(path);
  // (name, begin in ns, correlation or 0) of every span with args, from both readings, as multisets.
  std::map<std::tuple<std::string, int64_t, uint64_t>, int> ours, theirs;
  for (size_t i = 0; i < store.gpu_args.size(); ++i) {
    const uint32_t row = store.gpu_args.row(i);
    ++ours[{std::string(store.name(row)), store.spans.begin[row], store.gpu_args.value(i).correlation}];
  }
  const auto json = nlohmann::json::parse(ReadWhole(path));
  const auto base = json["baseTimeNanoseconds"].get<int64_t>();
  uint64_t dims = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event.value("ph", "") != "X" || !event.contains("args")) continue;
    const auto& args = event["args"];
    const bool op = event["cat"] == "cpu_op" || event["cat"] == "user_annotation";
    dims += op && args.contains("Input Dims") ? 1 : 0;
    if (!args.contains("correlation")) continue;
    const auto ns = static_cast<int64_t>(std::llround(event["ts"].get<long double>() * 1000.0L));
    ++theirs[{event["name"], base + ns, args["correlation"].get<uint64_t>()}];
  }
  std::erase_if(ours, [](const auto& row) { return std::get<2>(row.first) == 0; });
  EXPECT_EQ(ours, theirs);
  uint64_t our_dims = 0;
  for (size_t i = 0; i < store.op_args.size(); ++i) our_dims += store.op_args.value(i).input_dims.valid() ? 1 : 0;
  EXPECT_EQ(our_dims, dims);
  EXPECT_GT(store.comm_args.size(), 0u);
}

/// Reaches from a kernel over its launch up the thread's stack; true when an interpreter frame is found.
bool ReachesPython(const trace::Store& store, trace::SpanRow launch) {
  for (trace::SpanRow row = launch; row.valid(); row = store.spans.parent[row.value()]) {
    if (store.kind(row.value()) == SpanKind::kPython) return true;
  }
  return false;
}

TEST(RealFiles, KernelsAreLinkedAndReachPython) {
  TELLER_NEED_REAL_FILES();
  for (const char* name : {"vllm_b200_eager_tp8_rank.json.gz", "sglang_qwen3_8b_decode/decode_step.json.gz",
                           "sglang_qwen3_8b_extend_step.json.gz", "vllm_mixed_piecewise_step.json.gz"}) {
    SCOPED_TRACE(name);
    trace::Store store = ReadAll(RealFiles() + "/traces/tracelens/" + name);
    tree::Nest(store, 0);
    trace::Trees trees;
    tree::LinkLaunches(store, trees);
    EXPECT_EQ(trees.gpu_work, trees.gpu_work_linked + trees.gpu_work_unlaunched);
    // A launch in the file is found by every kernel that names it: what is unlaunched has no call with its id.
    std::set<uint32_t> calls;
    for (size_t i = 0; i < store.gpu_args.size(); ++i) {
      if (trace::IsApiCall(store.kind(store.gpu_args.row(i)))) calls.insert(store.gpu_args.value(i).correlation);
    }
    uint64_t with_call = 0;
    for (size_t i = 0; i < store.gpu_args.size(); ++i) {
      const auto& args = store.gpu_args.value(i);
      if (trace::IsGpuWork(store.kind(store.gpu_args.row(i))) && args.correlation != 0 &&
          calls.count(args.correlation) != 0) {
        ++with_call;
      }
    }
    EXPECT_GE(static_cast<double>(trees.gpu_work_linked), 0.99 * static_cast<double>(with_call));
    EXPECT_GT(with_call, 400u);
    const auto reached = std::count_if(trees.launches.begin(), trees.launches.end(),
                                       [&store](const auto& link) { return ReachesPython(store, link.launch); });
    EXPECT_GE(static_cast<double>(reached), 0.99 * static_cast<double>(trees.launches.size()));
  }
}

TEST(RealFiles, ParentsContainTheirChildren) {
  TELLER_NEED_REAL_FILES();
  trace::Store store = ReadAll(RealFiles() + "/traces/tracelens/xdit_sd35_pair");
  tree::Nest(store, 0);
  for (size_t row = 0; row < store.spans.size(); ++row) {
    const auto parent = store.spans.parent[row];
    if (!parent.valid()) {
      ASSERT_EQ(store.spans.depth[row], 0);
      continue;
    }
    ASSERT_LT(parent.value(), row);
    ASSERT_EQ(store.spans.depth[row], store.spans.depth[parent.value()] + 1);
    ASSERT_LE(store.spans.begin[parent.value()], store.spans.begin[row]);
    ASSERT_GE(store.spans.end(parent.value()), store.spans.end(row));
  }
  EXPECT_GT(store.diagnostics.Count("tree.overlap_python"), 2000u);
}

}  // namespace
}  // namespace teller
