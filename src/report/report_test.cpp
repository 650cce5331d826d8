// What every writer of this module owes: right content, bounded width, nothing hostile in the output.
#include <gtest/gtest.h>

#include <string>

#include "report/diagnosis_html.hpp"
#include "report/diagnosis_json.hpp"
#include "report/diagnosis_text.hpp"
#include "report/inspect.hpp"
#include "report/logs.hpp"
#include "report/perfetto.hpp"
#include "report/printable.hpp"
#include "report/sample_run.hpp"
#include "report/tree_text.hpp"
#include "report/view_json.hpp"

namespace teller::report {
namespace {

using Json = nlohmann::ordered_json;

const char* const kHostile = "</script><img src=x onerror=alert(1)>\x1b]0;owned\x07<!--\xff & \"'";

std::string Exported(const SampleRun& sample) {
  std::string text;
  const base::Status status = WritePerfetto(sample.run, sample.diagnosis, [&](std::string_view piece) {
    text += piece;
    return base::Status();
  });
  EXPECT_TRUE(status.ok());
  return text;
}

bool HasControlBytes(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') return true;
  }
  return false;
}

TEST(DiagnosisToText, NamesTheCulpritAndItsProof) {
  const SampleRun sample;
  const std::string text = DiagnosisToText(sample.run, sample.diagnosis, {});
  for (const char* part :
       {"ABNORMAL", "KERNEL_REGRESSION", "rank 1", "aten::mm", "[E1]", "span:21", "line:7", "13.0 ms lost",
        "notes.bin: neither a trace nor a log", "trace.truncated", "byte 900", "the first step warms up"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(DiagnosisToText, KeepsTheWidthAndColoursOnlyWhenAsked) {
  const SampleRun sample(std::string(500, 'x'));
  for (const size_t width : {40u, 80u, 132u}) {
    const std::string text = DiagnosisToText(sample.run, sample.diagnosis, {.width = width});
    EXPECT_FALSE(HasControlBytes(text));
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      // Verdict and finding heads are single lines of fixed length.
      EXPECT_LE(Columns(std::string_view(text).substr(at, end - at)), std::max<size_t>(width, 72))
          << text.substr(at, end - at);
      at = end + 1;
    }
  }
  EXPECT_TRUE(HasControlBytes(DiagnosisToText(sample.run, sample.diagnosis, {.color = true})));
}

TEST(DiagnosisToText, SaysWhatToCaptureWhenItCannotTell) {
  SampleRun sample;
  sample.diagnosis = {};
  sample.diagnosis.missing = {"a profile with Python stacks"};
  const std::string text = DiagnosisToText(sample.run, sample.diagnosis, {});
  EXPECT_NE(text.find("CANNOT TELL"), std::string::npos);
  EXPECT_NE(text.find("a profile with Python stacks"), std::string::npos);
}

/// A diagnosis without findings that suspects somebody.
trace::Diagnosis OnlySuspicious() {
  trace::Diagnosis diagnosis{.status = trace::VerdictStatus::kNormal, .summary = "Nothing abnormal was found."};
  for (const int rank : {1, 0}) {
    trace::Suspect suspect;
    suspect.culprit = {.rank = rank, .process = "rank" + std::to_string(rank), .layer = "op", .op = "aten::mm"};
    suspect.fault = trace::FaultClass::kKernelRegression;
    suspect.view = "vertical";
    suspect.lost = 13 * base::kMilli;
    suspect.text = "rank " + std::to_string(rank) + ", aten::mm: 13 ms more than usual";
    diagnosis.suspects.push_back(suspect);
  }
  return diagnosis;
}

TEST(DiagnosisToText, ASuspectIsNoVerdict) {
  SampleRun sample;
  sample.diagnosis = OnlySuspicious();
  const std::string text = DiagnosisToText(sample.run, sample.diagnosis, {.width = 100});
  EXPECT_EQ(text.find("NOTHING ABNORMAL"), 0u);
  const size_t said = text.find("not proved");
  ASSERT_NE(said, std::string::npos) << text;
  EXPECT_NE(text.find("if something was slow all the same, look first at:", said), std::string::npos) << text;
  EXPECT_NE(text.find("rank 1, aten::mm", said), std::string::npos) << text;
  EXPECT_EQ(text.find("rank 0, aten::mm"), std::string::npos) << "one will do unless asked for all";
  EXPECT_NE(DiagnosisToText(sample.run, sample.diagnosis, {.all = true}).find("rank 0, aten::mm"), std::string::npos);
}

TEST(DiagnosisToText, NoSuspectStandsBesideAFinding) {
  SampleRun sample;
  const std::string before = DiagnosisToText(sample.run, sample.diagnosis, {});
  sample.diagnosis.suspects = OnlySuspicious().suspects;
  EXPECT_EQ(DiagnosisToText(sample.run, sample.diagnosis, {}), before);
  EXPECT_NE(DiagnosisToText(sample.run, sample.diagnosis, {.all = true}).find("not proved"), std::string::npos);
}

TEST(DiagnosisToJson, SuspectsChangeNothingElse) {
  SampleRun sample;
  for (const bool normal : {false, true}) {
    if (normal) sample.diagnosis = OnlySuspicious();
    sample.diagnosis.suspects.clear();
    const Json without = DiagnosisToJson(sample.run, sample.diagnosis, false);
    EXPECT_EQ(without["suspects"], Json::array());
    sample.diagnosis.suspects = OnlySuspicious().suspects;
    Json with = DiagnosisToJson(sample.run, sample.diagnosis, false);
    ASSERT_EQ(with["suspects"].size(), 2u);
    EXPECT_EQ(with["suspects"][0]["culprit"]["rank"], 1);
    EXPECT_EQ(with["suspects"][0]["culprit"]["op"], "aten::mm");
    EXPECT_EQ(with["suspects"][0]["class"], "KERNEL_REGRESSION");
    EXPECT_TRUE(with["suspects"][0]["false_alarm_probability"].is_null());
    EXPECT_EQ(with["suspects"][0]["cost_ns"], 13'000'000);
    with["suspects"] = Json::array();
    EXPECT_EQ(with.dump(), without.dump());
  }
}

TEST(DiagnosisToText, ShowsTwentyFindingsUnlessAll) {
  SampleRun sample;
  sample.diagnosis.findings.assign(25, sample.diagnosis.findings.front());
  EXPECT_NE(DiagnosisToText(sample.run, sample.diagnosis, {}).find("5 more findings"), std::string::npos);
  EXPECT_EQ(DiagnosisToText(sample.run, sample.diagnosis, {.all = true}).find("more findings"), std::string::npos);
}

TEST(DiagnosisToJson, FollowsTheContract) {
  const SampleRun sample;
  const Json json = DiagnosisToJson(sample.run, sample.diagnosis, false);
  EXPECT_EQ(json["schema"], "teller.diagnosis/1");
  EXPECT_EQ(json["verdict"]["status"], "abnormal");
  EXPECT_EQ(json["verdict"]["class"], "KERNEL_REGRESSION");
  EXPECT_EQ(json["input"]["ranks"], Json({0, 1}));
  EXPECT_EQ(json["input"]["begin_ns"], kSampleBase);
  EXPECT_TRUE(json["input"]["begin_ns"].is_number_integer());
  EXPECT_EQ(json["input"]["clock"]["error_ns"], 1200);
  const Json& finding = json["findings"][0];
  EXPECT_EQ(finding["culprit"]["op"], "aten::mm");
  EXPECT_TRUE(finding["culprit"]["module"].is_null());
  EXPECT_EQ(finding["evidence"][1]["file"], 2);
  EXPECT_EQ(finding["without_it"]["observed_ns"], 18'000'000);
  EXPECT_EQ(json["diagnostics"][0]["severity"], Name(base::Severity::kDataLoss));
}

TEST(DiagnosisToJson, NormalHasNoClassConfidenceOrAction) {
  SampleRun sample;
  sample.diagnosis = {.status = trace::VerdictStatus::kNormal, .summary = "nothing abnormal"};
  const Json verdict = DiagnosisToJson(sample.run, sample.diagnosis, false)["verdict"];
  EXPECT_TRUE(verdict["class"].is_null());
  EXPECT_TRUE(verdict["confidence"].is_null());
  EXPECT_TRUE(verdict["first_action"].is_null());
}

TEST(JsonText, ReplacesWhatIsNoUtf8) {
  const std::string text = JsonText({{"name",
                                      "a\xff"
                                      "b"}});
  EXPECT_EQ(Json::parse(text)["name"],
            "a\xEF\xBF\xBD"
            "b");
}

TEST(DiagnosisToHtml, HostileTextStaysData) {
  const SampleRun hostile(kHostile, kHostile);
  const std::string page = DiagnosisToHtml(hostile.run, hostile.diagnosis, false);
  const std::string plain = DiagnosisToHtml(SampleRun("op").run, SampleRun("op").diagnosis, false);
  const auto count = [](const std::string& text, std::string_view what) {
    size_t n = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count(page, "</script>"), count(plain, "</script>"));
  EXPECT_EQ(count(page, "<img"), 0u);
  EXPECT_EQ(count(page, "<!--"), 0u);
  EXPECT_FALSE(HasControlBytes(page.substr(0, page.find("<noscript>"))));
}

TEST(DiagnosisToHtml, ForbidsNetworkAndForeignScript) {
  const SampleRun sample;
  const std::string page = DiagnosisToHtml(sample.run, sample.diagnosis, false);
  EXPECT_NE(page.find("default-src 'none'; script-src 'sha256-"), std::string::npos);
  EXPECT_EQ(page.find("http://", 0), page.find("http://www.w3.org/2000/svg"));
  EXPECT_EQ(page.find("https://"), std::string::npos);
  EXPECT_EQ(page.find("unsafe-inline"), std::string::npos);
}

TEST(ViewToJson, ShowsTheCulpritStepWithItsProof) {
  const SampleRun sample;
  const Json view = ViewToJson(sample.run, sample.diagnosis);
  EXPECT_EQ(view["focus"]["step"]["rank"], 1);
  EXPECT_EQ(view["focus"]["step"]["index"], 1);
  EXPECT_EQ(view["timeline"]["lanes"].size(), 4u);  // host and stream of both ranks
  const std::string text = view.dump();
  EXPECT_NE(text.find("\"E1\""), std::string::npos);
  bool kernel = false;
  for (const Json& node : view["tree"]["nodes"]) kernel = kernel || node[2] == "kernel";
  EXPECT_TRUE(kernel);
  EXPECT_EQ(view["logs"]["records"].size(), 1u);
  EXPECT_EQ(view["steps"]["series"].size(), 2u);
}

TEST(ViewToJson, SurvivesARunWithoutAnything) {
  const engine::Run run;
  const Json view = ViewToJson(run, {});
  EXPECT_TRUE(view["timeline"].is_null());
  EXPECT_TRUE(view["tree"].is_null());
}

TEST(CallTree, HangsKernelsUnderTheirLaunch) {
  const SampleRun sample;
  const CallTree tree = BuildCallTree(sample.run, {});
  ASSERT_EQ(tree.lanes.size(), 2u);  // streams have no work of their own
  const uint32_t kernel = tree.node_of[12];
  const uint32_t launch = tree.node_of[3];
  ASSERT_NE(kernel, CallTree::kNoNode);
  EXPECT_EQ(tree.nodes[launch].children, std::vector<uint32_t>{kernel});
  EXPECT_EQ(tree.nodes[kernel].count, 1u);  // each step has a name of its own
  EXPECT_GE(tree.nodes[launch].weight, tree.nodes[kernel].total);
}

TEST(CallTree, ScopeOfAStepLeavesOtherStepsOut) {
  const SampleRun sample;
  const trace::Step& step = sample.run.trees.steps[1];
  const CallTree tree = BuildCallTree(sample.run, {.process = step.process, .begin = step.begin, .end = step.end});
  ASSERT_EQ(tree.lanes.size(), 1u);
  uint64_t kernels = 0;
  for (const CallNode& node : tree.nodes) kernels += node.kind == trace::SpanKind::kKernel ? node.count : 0;
  EXPECT_EQ(kernels, 1u);
}

TEST(CallTreeToText, ShowsTheChainFromPythonToKernel) {
  const SampleRun sample;
  const std::string text = CallTreeToText(sample.run, BuildCallTree(sample.run, {}), {.hide_below = 0});
  size_t at = 0;
  for (const char* part : {"rank 0 (Worker_TP0), main", "step 0", "model.py(10): forward", "aten::mm",
                           "cudaLaunchKernel", "gemm_kernel"}) {
    at = text.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << "\n" << text;
  }
}

TEST(TextReports, ShowHostileTextHarmlessly) {
  const SampleRun sample(kHostile, kHostile);
  EXPECT_FALSE(HasControlBytes(DiagnosisToText(sample.run, sample.diagnosis, {})));
  EXPECT_FALSE(HasControlBytes(CallTreeToText(sample.run, BuildCallTree(sample.run, {}), {})));
  EXPECT_FALSE(HasControlBytes(StepsToText(sample.run, {}, {})));
  EXPECT_FALSE(HasControlBytes(LogsToText(sample.run, {})));
  EXPECT_FALSE(HasControlBytes(InspectToText(sample.run, {})));
}

TEST(Logs, CountsTemplatesAndRangesOfStatistics) {
  const SampleRun sample;
  std::string text;
  const Sink sink = [&](std::string_view piece) {
    text += piece;
    return base::Status();
  };
  ASSERT_TRUE(WriteLogsJson(sample.run, sink).ok());
  EXPECT_EQ(Json::parse(text)["templates"][0]["text"], "rank <int> waits");
  const auto ranges = StatisticRanges(sample.run.store);
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].median, 3);
}

TEST(WritePerfetto, KeepsEverySpanExactlyAndMarksFindings) {
  const SampleRun sample(kHostile);
  const Json json = Json::parse(Exported(sample));
  EXPECT_EQ(json["baseTimeNanoseconds"], kSampleBase);
  size_t spans = 0;
  size_t marks = 0;
  for (const Json& event : json["traceEvents"]) {
    spans += event.value("ph", "") == "X" && event["pid"] != 0;
    marks += event["pid"] == 0 && event.value("ph", "") != "M";
  }
  EXPECT_EQ(spans, sample.run.store.spans.size());
  EXPECT_EQ(marks, 3u);  // one step, two pieces of evidence
}

TEST(WritePerfetto, StopsWhenTheSinkFails) {
  const SampleRun sample;
  const base::Status status = WritePerfetto(sample.run, sample.diagnosis, [](std::string_view) {
    return base::Status(base::Error{.code = base::Code::kUnreadable, .message = "no space"});
  });
  EXPECT_FALSE(status.ok());
}

}  // namespace
}  // namespace teller::report
