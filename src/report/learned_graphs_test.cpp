#include "report/learned_graphs.hpp"

#include <gtest/gtest.h>

#include "ingest/learned_graphs/learned_graphs.hpp"

namespace teller::report {
namespace {

using trace::GraphSource;
using trace::LearnedLaunch;
using trace::LearnedSequence;

/// Sequences with every field and with names that are hard to write.
std::vector<LearnedSequence> Sample(trace::Store& store) {
  const auto name = [&](const std::string& text) { return store.strings.Intern(text); };
  LearnedSequence capture{.model = 1, .source = GraphSource::kCapture, .whole = true, .joined = true, .batch = 32};
  capture.launches = {
      {trace::SpanKind::kKernel, name("gemm_#<a, \"b\">"), name("gemm_#"), name("M_0/L_0"), name("aten::mm")},
      {trace::SpanKind::kCopy, name("Memcpy \n\t\\ DtoD"), name("Memcpy"), {}, name("aten::copy_")},
      {trace::SpanKind::kMemset, {}, {}, name("M_0/\xC3\xA9"), {}}};
  LearnedSequence eager{.source = GraphSource::kEager};
  eager.launches = {capture.launches[0], capture.launches[0]};
  return {capture, eager};
}

base::Status Read(const std::string& text, trace::Store& store) {
  store.files.resize(1);
  auto source = base::OpenMemory(text);
  return ingest::ReadGraphs(*source, trace::FileRow(0), store, {});
}

TEST(LearnedGraphs, WhatIsWrittenIsReadBack) {
  trace::Store store;
  const auto sequences = Sample(store);
  const std::string text = GraphsToJsonLines(store, sequences);
  EXPECT_TRUE(ingest::LooksLikeGraphs(text));
  trace::Store other;
  other.strings.Intern("numbers differ");
  const auto status = Read(text, other);
  ASSERT_TRUE(status.ok()) << status.error().Text();
  ASSERT_EQ(other.learned_graphs.size(), sequences.size());
  for (size_t s = 0; s < sequences.size(); ++s) {
    const LearnedSequence& a = sequences[s];
    const LearnedSequence& b = other.learned_graphs[s];
    EXPECT_EQ(std::tuple(a.source, a.whole, a.joined, a.batch, a.model),
              std::tuple(b.source, b.whole, b.joined, b.batch, b.model));
    ASSERT_EQ(a.launches.size(), b.launches.size());
    for (size_t i = 0; i < a.launches.size(); ++i) {
      EXPECT_EQ(a.launches[i].kind, b.launches[i].kind);
      for (const auto field :
           {&LearnedLaunch::family, &LearnedLaunch::stem, &LearnedLaunch::module, &LearnedLaunch::op})
        EXPECT_EQ(store.text(a.launches[i].*field), other.text(b.launches[i].*field));
    }
  }
  EXPECT_EQ(GraphsToJsonLines(other, other.learned_graphs), text);
}

TEST(LearnedGraphs, NoDamageIsReadAsData) {
  trace::Store store;
  const std::string text = GraphsToJsonLines(store, Sample(store));
  for (size_t at = 0; at < text.size(); ++at) {
    for (const int bit : {0, 3, 6}) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      trace::Store other;
      const auto status = Read(damaged, other);
      EXPECT_FALSE(status.ok()) << at;
      EXPECT_TRUE(other.learned_graphs.empty());
    }
    trace::Store other;
    EXPECT_FALSE(Read(text.substr(0, at), other).ok()) << at;
  }
}

TEST(LearnedGraphs, LongAndWrongBytesAreCutNotRefused) {
  trace::Store store;
  LearnedSequence sequence;
  for (const std::string& name : {std::string(9000, 'x'), std::string(5000, '\xFF'), std::string("\xC3")})
    sequence.launches.push_back({.family = store.strings.Intern(name), .stem = store.strings.Intern("s")});
  trace::Store other;
  const auto status = Read(GraphsToJsonLines(store, {sequence}), other);
  EXPECT_TRUE(status.ok()) << status.error().Text();
}

}  // namespace
}  // namespace teller::report
