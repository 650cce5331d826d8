#include "trace/graph_origin.hpp"

namespace teller::trace {

std::string_view Name(GraphSource source) {
  switch (source) {
    case GraphSource::kCapture: return "capture";
    case GraphSource::kEager: return "eager step";
  }
  return "unknown";
}

}  // namespace teller::trace
