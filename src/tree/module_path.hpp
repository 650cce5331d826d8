#pragma once

#include <unordered_map>

#include "trace/store.hpp"

namespace teller::tree {

/// What stands around a span on its track.
struct Surroundings {
  trace::StringId module;      ///< nn.Module path, parts joined by "/"; or an annotation that is a module's dotted path
  trace::StringId op;          ///< innermost framework operator
  trace::StringId annotation;  ///< innermost annotation
  trace::SpanRow root;         ///< outermost nn.Module frame
  trace::SpanRow op_span;
};

/// Finds the surroundings of spans. Ancestors are walked once each, whatever the number of questions.
/// Needs Spans::parent; interns paths. Threads: confined.
class Surrounder {
 public:
  explicit Surrounder(trace::Store& store) : store_(store) {}

  /// Of the span's ancestors, not of itself.
  Surroundings Around(trace::SpanRow span);

 private:
  Surroundings Within(const Surroundings& outer, uint32_t span);

  trace::Store& store_;
  std::unordered_map<uint32_t, Surroundings> known_;  // by span: what its children see
};

/// "model.layers.3.mlp": words joined by dots, at least one of them a number. Layer-wise annotations of engines look
/// so.
bool IsDottedPath(std::string_view text);

/// The module path that both agree on: parts that differ in their number only become "Name_*", the first other
/// difference ends the path. "M_0/Layer_3/MLP_3" and "M_0/Layer_4/MLP_4" -> "M_0/Layer_*/MLP_*".
std::string CommonModule(std::string_view a, std::string_view b);

}  // namespace teller::tree
