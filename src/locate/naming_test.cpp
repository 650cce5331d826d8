#include "locate/naming.hpp"

#include <gtest/gtest.h>

namespace teller::locate {
namespace {

/// One thread whose spans begin at 0, 10, 20 ...
trace::Store Thread(const std::vector<std::string>& names) {
  trace::Store store;
  store.tracks.resize(1);
  store.tracks[0].first_span = 0;
  store.tracks[0].span_count = static_cast<uint32_t>(names.size());
  store.categories.push_back({"user_annotation", trace::SpanKind::kAnnotation});
  for (size_t i = 0; i < names.size(); ++i) {
    store.spans.begin.push_back(static_cast<Nanos>(10 * i));
    store.spans.duration.push_back(5);
    store.spans.name.push_back(store.strings.Intern(names[i]));
    store.spans.track.push_back(trace::TrackRow(0));
    store.spans.category.push_back(0);
    store.spans.parent.emplace_back();
    store.spans.depth.push_back(0);
  }
  return store;
}

TEST(Naming, AModuleThatFsdpHasEnteredIsTheOneInProgress) {
  const trace::Store store = Thread({"FSDP::pre_forward (layers.1)", "FSDP::all_gather (layers.1)", "aten::mm",
                                     "FSDP::post_forward (layers.1)", "aten::add", "FSDP::pre_forward (layers.2)",
                                     "aten::mm", "FSDP::pre_backward (layers.2)", "aten::mm"});
  const auto at = [&](Nanos time) { return ModuleInProgress(store, trace::TrackRow(0), time); };
  EXPECT_EQ(at(-1), "");
  EXPECT_EQ(at(22), "layers.1");
  EXPECT_EQ(at(45), "") << "it has left it";
  EXPECT_EQ(at(65), "layers.2");
  EXPECT_EQ(at(1000), "layers.2");
  EXPECT_EQ(ModuleAt(store, 2), "layers.1");
  EXPECT_EQ(ModuleAt(store, 4), "");
}

TEST(Naming, OtherNamesAreNoModules) {
  for (const char* name : {"FSDP::pre_forward", "FSDP::pre_forward (", "FSDP::root_pre_forward (x)", "FSDP::p", ""}) {
    const trace::Store store = Thread({name, "aten::mm"});
    EXPECT_EQ(ModuleInProgress(store, trace::TrackRow(0), 15), "") << name;
  }
}

/// What a thread did between 10 and 110, when these spans (of a kind) lasted so long.
struct Spent {
  std::string name;
  trace::SpanKind kind;
  Nanos begin;
  Nanos duration;
};
HostTime Between10And110(const std::vector<Spent>& spans) {
  std::vector<std::string> names;
  for (const Spent& span : spans) names.push_back(span.name);
  trace::Store store = Thread(names);
  for (size_t i = 0; i < spans.size(); ++i) {
    store.categories.push_back({std::string(trace::Name(spans[i].kind)), spans[i].kind});
    store.spans.category[i] = static_cast<uint8_t>(i + 1);
    store.spans.begin[i] = spans[i].begin;
    store.spans.duration[i] = spans[i].duration;
  }
  return ReadHostTime(store, trace::TrackRow(0), 10, 110);
}

TEST(Naming, ABuiltInThatFillsAStretchBlocksUnlessItComputes) {
  using trace::SpanKind;
  const Spent step{"engine.py(7): step", SpanKind::kPython, 0, 1000};
  EXPECT_EQ(Between10And110({step, {"<built-in method sleep>", SpanKind::kPython, 5, 110}}), HostTime::kBlocked);
  EXPECT_EQ(
      Between10And110(
          {step, {"<built-in function linear>", SpanKind::kPython, 5, 110}, {"aten::linear", SpanKind::kOp, 6, 108}}),
      HostTime::kStopped);
  EXPECT_EQ(Between10And110(
                {step, {"<built-in method recv>", SpanKind::kPython, 5, 110}, {"aten::add", SpanKind::kOp, 6, 10}}),
            HostTime::kBlocked)
      << "a short one";
  EXPECT_EQ(Between10And110(
                {step, {"custom::op", SpanKind::kOp, 4, 120}, {"<built-in method sleep>", SpanKind::kPython, 5, 110}}),
            HostTime::kBlocked)
      << "an operator that calls it";
  EXPECT_EQ(Between10And110({{"aten::linear", SpanKind::kOp, 6, 108}}), HostTime::kUnknown) << "no frames";
}

}  // namespace
}  // namespace teller::locate
