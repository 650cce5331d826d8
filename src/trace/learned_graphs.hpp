#pragma once

#include <cstdint>
#include <vector>

#include "trace/graph_origin.hpp"
#include "trace/types.hpp"

namespace teller::trace {

/// One launch of a learned sequence. Names are kept without their numbers: these depend on batch, library and GPU.
struct LearnedLaunch {
  SpanKind kind = SpanKind::kKernel;  ///< kernel, copy or memset
  StringId family;                    ///< kernel name, each number a '#'; none = the recording named the call only
  StringId stem;                      ///< its function without template arguments; none where family is
  StringId module;                    ///< nn.Module path, parts joined by "/"; none = not known
  StringId op;                        ///< innermost framework operator; none = not known

  friend bool operator==(const LearnedLaunch&, const LearnedLaunch&) = default;
};

/// A sequence of launches whose modules and operators an earlier run showed. Holds nothing of that run but names.
struct LearnedSequence {
  base::FileRow file;  ///< learned file that it was read from; none when it was found in this run
  uint32_t model = 0;  ///< sequences of one recorded process have one number; counts from 0 in each file
  GraphSource source = GraphSource::kCapture;  ///< what it was recorded as: capture or eager step
  bool whole = false;                          ///< exactly what a graph holds; else the graph may be a part of it
  bool joined = false;                         ///< several captures of one forward pass, in their order
  int64_t batch = -1;                          ///< what it was captured for; -1 unknown
  std::vector<LearnedLaunch> launches;
};

/// Bounds on what is learned into one file and believed of one run.
inline constexpr size_t kMaxLearnedSequences = 4096;
inline constexpr size_t kMaxLearnedLaunches = size_t{1} << 20;  ///< of all sequences together
inline constexpr size_t kMaxSequenceLaunches = size_t{1} << 17;

}  // namespace teller::trace
