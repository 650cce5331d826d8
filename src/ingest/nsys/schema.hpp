#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ingest/nsys/database.hpp"
#include "trace/types.hpp"

namespace teller::ingest::nsys {

/// How the rows of a table are laid out and what becomes of them.
enum class Shape : uint8_t {
  kGpu,        ///< work on a stream
  kHost,       ///< a call on a thread
  kRuntime,    ///< a CUDA call: it has a correlation id, and a class that tells runtime from driver
  kGraphNode,  ///< the making of a CUDA graph or of a node of one, on a thread
  kNvtx,
  kSample,  ///< where a thread was at one time
};

/// A table that is read. Source: NVIDIA's documentation of the export (exported_data) and the schema text inside of
/// exports of 2022.2 (schema 2.9.1) to 2026.2 (3.25.0).
struct EventTable {
  std::string_view name;
  Shape shape;
  std::string_view category;
  trace::SpanKind kind;
};

/// In the order in which they are read, which is the order of ties between spans of equal times: what encloses comes
/// first.
std::span<const EventTable> EventTables();

/// Positions of the columns of a row, by shape.
namespace gpu {
/// kWhat: the name of a kernel, the kind of a copy, memset or synchronization, the number of a graph.
enum : int { kStart, kEnd, kPid, kWhat, kContext, kStream, kDevice, kCorrelation, kNode, kBytes, kSource, kTarget };
}  // namespace gpu
namespace host {
/// kClass: of a CUDA call. kNode, kOriginal: of a graph node.
enum : int { kStart, kEnd, kTid, kName, kCorrelation, kClass, kNode, kOriginal };
}  // namespace host
namespace nvtx {
enum : int { kStart, kEnd, kTid, kTextId, kText, kType, kEndTid, kDomain };
}  // namespace nvtx
namespace sample {
enum : int { kStart, kId, kTid };
}  // namespace sample

/// What to ask of a table of this shape, in the order above.
const Columns& ColumnsOf(Shape shape);

/// True when the table has what its rows cannot do without.
bool HasNeeded(const Table& table, Shape shape);

}  // namespace teller::ingest::nsys
