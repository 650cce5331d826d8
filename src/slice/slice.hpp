#pragma once

#include <cstdint>
#include <vector>

#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::slice {

/// Why a node belongs to a slice.
enum class Relation : uint8_t {
  kSymptom,     ///< the span the slice is about
  kAncestor,    ///< called it, directly or not
  kChild,       ///< was called by it; longest first
  kBefore,      ///< the sibling that ended last before it began
  kAfter,       ///< the sibling that began first after it ended
  kLaunch,      ///< the API call that launched it, or that it is
  kWork,        ///< GPU work that it or a child launched
  kCollective,  ///< its own part of a collective it overlaps
  kPeer,        ///< another rank's part of such a collective
  kLog,         ///< a log record of its time, aligned to its process or step
};

/// One node: a span or a log record.
struct Node {
  Relation relation = Relation::kSymptom;
  trace::SpanRow span;   ///< none for log records
  trace::LogRow log;     ///< none for spans
};

/// The part of a run that can explain a symptom. Order: symptom first, then by relation, then by time.
struct Slice {
  std::vector<Node> nodes;
  uint64_t left_out = 0;  ///< nodes that the budget did not hold
};

struct SliceOptions {
  uint32_t budget = 64;                              ///< most nodes, the symptom included; at least 1
  trace::Nanos log_window = base::kSecond;           ///< how far from the symptom a log record may be
};

/// Ancestors, children, neighbours in time, launch links, peers of its collectives and aligned log records of `symptom`.
/// Ancestors and peers come first when the budget is short, children and logs fill the rest in equal parts.
/// Properties: contains the symptom, never more than `budget` nodes, every node once, unchanged by adding spans of other
/// processes that share no collective with it.
Slice CausalSlice(const trace::Store& store, const trace::Trees& trees, trace::SpanRow symptom, const SliceOptions& options = {});

}  // namespace teller::slice
