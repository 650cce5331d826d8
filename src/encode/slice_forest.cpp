#include <algorithm>
#include <map>
#include <tuple>

#include "encode/forest.hpp"

namespace teller::encode {

namespace {

using trace::Nanos;
using trace::SpanRow;

constexpr uint32_t kNone = UINT32_MAX;

/// A node of the slice with its place in the tree: index of the parent among the entries.
struct Entry {
  const slice::Node* node = nullptr;
  uint32_t parent = kNone;
  bool work = false;  ///< GPU work under its launch: before the launch's calls
  Nanos at = 0;
};

}  // namespace

Forest ForestBuilder::Build(const slice::Slice& slice) {
  std::map<uint32_t, uint32_t> by_span;
  std::vector<Entry> entries;
  for (const slice::Node& node : slice.nodes) {
    Entry entry{.node = &node};
    if (node.span.valid()) {
      entry.at = store_.spans.begin[node.span.value()];
      by_span.emplace(node.span.value(), static_cast<uint32_t>(entries.size()));
    } else {
      entry.at = store_.logs[node.log.value()].at;
    }
    entries.push_back(entry);
  }
  std::map<uint32_t, uint32_t> launch_of;
  for (const auto& [launch, work] : work_) {
    if (by_span.count(work) != 0) launch_of.emplace(work, launch);
  }
  for (Entry& entry : entries) {
    if (!entry.node->span.valid()) continue;
    const uint32_t row = entry.node->span.value();
    const auto launched = launch_of.find(row);
    entry.work = launched != launch_of.end();
    // The nearest one around it that the slice holds.
    SpanRow around = entry.work ? SpanRow(launched->second) : store_.spans.parent[row];
    while (around.valid() && by_span.count(around.value()) == 0) around = store_.spans.parent[around.value()];
    if (around.valid()) entry.parent = by_span.at(around.value());
  }
  std::vector<std::vector<uint32_t>> children(entries.size() + 1);
  for (uint32_t i = 0; i < entries.size(); ++i) {
    children[entries[i].parent == kNone ? entries.size() : entries[i].parent].push_back(i);
  }
  for (auto& list : children) {
    std::sort(list.begin(), list.end(), [&](uint32_t a, uint32_t b) {
      const auto key = [&](uint32_t i) { return std::tuple(!entries[i].work, entries[i].at, i); };
      return key(a) < key(b);
    });
  }
  Forest forest;
  struct Open {
    uint32_t entry;
    uint32_t depth;
  };
  std::vector<Open> stack;
  const auto push = [&](const std::vector<uint32_t>& list, uint32_t depth) {
    for (size_t i = list.size(); i-- > 0;) stack.push_back({list[i], depth});
  };
  push(children.back(), 0);
  while (!stack.empty()) {
    const Open open = stack.back();
    stack.pop_back();
    const slice::Node& node = *entries[open.entry].node;
    if (node.span.valid()) {
      AddNode(node.span.value(), open.depth, forest);
    } else {
      AddStructure(Layer::kLog, std::string(trace::Name(store_.logs[node.log.value()].level)), forest);
    }
    push(children[open.entry], open.depth + 1);
  }
  return forest;
}

}  // namespace teller::encode
