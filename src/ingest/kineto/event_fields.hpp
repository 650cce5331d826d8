#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace teller::ingest {

/// Raw JSON text of one value, from its first character up to the next token (so with trailing white space).
using RawValue = std::string_view;

/// The fields of one event as raw JSON text; empty = missing.
struct EventFields {
  RawValue ph, cat, name, pid, tid, ts, dur, id, bind_id, flow_in, flow_out;
};

/// A key and a scalar value, raw.
struct RawArg {
  std::string_view key;
  RawValue value;
};

/// The args that are kept, as raw JSON text; empty = missing.
struct EventArgs {
  RawValue external_id, correlation, graph_node, device, stream, bytes;
  RawValue input_dims, input_types, label;
  RawValue kernel;  ///< what a launch enqueues, where the writer tells (ROCm)
  RawValue python_id, python_parent, python_module;
  RawValue collective, group, group_ranks, dtype, in_elements, out_elements, sequence, group_size, peer;
  RawValue name, labels;        ///< of metadata events
  std::vector<RawArg> scalars;  ///< all other scalars, collected where `want_scalars`
  bool want_scalars = true;
  bool present = false;

  void Clear();
};

std::string_view Trim(RawValue raw);
inline bool IsText(RawValue raw) {
  return !raw.empty() && raw.front() == '"';
}

}  // namespace teller::ingest
