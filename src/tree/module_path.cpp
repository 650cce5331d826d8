#include "tree/module_path.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace teller::tree {

namespace {

constexpr std::string_view kModule = "nn.Module: ";
constexpr size_t kMaxPath = 1024;  // a model's deepest path has some 200 characters

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view WithoutNumber(std::string_view part) {
  while (!part.empty() && IsDigit(part.back())) part.remove_suffix(1);
  if (part.ends_with('*')) part.remove_suffix(1);
  return part;
}

}  // namespace

bool IsDottedPath(std::string_view text) {
  if (text.size() > kMaxPath) return false;
  bool number = false;
  size_t parts = 0;
  for (size_t at = 0; at <= text.size();) {
    const size_t dot = std::min(text.find('.', at), text.size());
    const std::string_view part = text.substr(at, dot - at);
    const bool word = std::all_of(part.begin(), part.end(), [](char c) {
      return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    });
    if (part.empty() || !word) return false;
    number = number || std::all_of(part.begin(), part.end(), IsDigit);
    ++parts;
    at = dot + 1;
  }
  return number && parts >= 2;
}

Surroundings Surrounder::Around(trace::SpanRow span) {
  std::vector<uint32_t> unknown;
  Surroundings around;
  for (trace::SpanRow at = store_.spans.parent[span.value()]; at.valid(); at = store_.spans.parent[at.value()]) {
    if (const auto found = known_.find(at.value()); found != known_.end()) {
      around = found->second;
      break;
    }
    unknown.push_back(at.value());
  }
  for (size_t i = unknown.size(); i-- > 0;) {
    around = Within(around, unknown[i]);
    known_.emplace(unknown[i], around);
  }
  return around;
}

Surroundings Surrounder::Within(const Surroundings& outer, uint32_t span) {
  Surroundings inner = outer;
  const std::string_view name = store_.name(span);
  switch (store_.kind(span)) {
    case trace::SpanKind::kOp:
      inner.op = store_.spans.name[span];
      inner.op_span = trace::SpanRow(span);
      break;
    case trace::SpanKind::kAnnotation:
      inner.annotation = store_.spans.name[span];
      if (IsDottedPath(name)) inner.module = store_.spans.name[span];
      break;
    case trace::SpanKind::kPython: {
      if (!name.starts_with(kModule)) break;
      const std::string_view outside = store_.text(outer.module);
      if (outside.size() + name.size() > kMaxPath) break;
      std::string path(outside);
      if (!path.empty()) path += '/';
      path += name.substr(kModule.size());
      inner.module = store_.strings.Intern(path);
      if (!inner.root.valid()) inner.root = trace::SpanRow(span);
      break;
    }
    default: break;
  }
  return inner;
}

std::string CommonModule(std::string_view a, std::string_view b) {
  std::string out;
  while (!a.empty() && !b.empty()) {
    const std::string_view part_a = a.substr(0, a.find('/'));
    const std::string_view part_b = b.substr(0, b.find('/'));
    const std::string_view stem = WithoutNumber(part_a);
    if (part_a != part_b && stem != WithoutNumber(part_b)) break;
    if (!out.empty()) out += '/';
    out += part_a == part_b ? std::string(part_a) : std::string(stem) + "*";
    a.remove_prefix(std::min(a.size(), part_a.size() + 1));
    b.remove_prefix(std::min(b.size(), part_b.size() + 1));
  }
  return out;
}

}  // namespace teller::tree
