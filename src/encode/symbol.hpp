#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "trace/store.hpp"

namespace teller::encode {

/// Layer of the stack that a node belongs to: the class of its symbol. An unknown operator keeps it. Written to
/// vocabulary files: never renumber.
enum class Layer : uint8_t {
  kOther = 0,
  kPython = 1,      ///< interpreter frame
  kModule = 2,      ///< nn.Module call, or a range that is a module's dotted path
  kOp = 3,          ///< framework operator
  kAnnotation = 4,  ///< range that the program or engine named
  kRuntime = 5,     ///< CUDA/HIP runtime call
  kDriver = 6,      ///< CUDA driver call
  kKernel = 7,
  kCopy = 8,
  kMemset = 9,
  kComm = 10,           ///< a collective, send or receive on the host: operator, worker span, library call
  kCommKernel = 11,     ///< its kernel
  kGpuAnnotation = 12,  ///< mirror of an annotation on a stream
  kSync = 13,
  kOverhead = 14,
  kProfiler = 15,
  kService = 16,
  kThread = 17,  ///< structure node: a thread, or the threads of one name
  kStream = 18,  ///< structure node: GPU streams, over work whose launch is not in the forest
  kLog = 19,     ///< log record (slices)
};
inline constexpr int kLayers = 20;

/// "python", "module", "op" ...
std::string_view Name(Layer layer);

/// What an operator is called wherever and whenever it runs.
struct Symbol {
  Layer layer = Layer::kOther;
  std::string name;

  friend auto operator<=>(const Symbol&, const Symbol&) = default;
};

/// Names never get longer; what is cut off is replaced by "~" and a hash of the whole.
inline constexpr size_t kMaxSymbolBytes = 200;

/// The symbol of a span: its layer, and its name without what differs between two runs, sizes or releases: template
/// arguments, shapes and tiles, hashes and addresses, mangling, layer and step numbers, batch sizes, install paths,
/// line numbers, API versions. Names of two layers never meet, because the layer is part of the symbol. Pure; any bytes
/// will do.
Symbol Normalize(trace::SpanKind kind, std::string_view name);

/// Symbols of a store's names, each worked out once. Threads: confined.
class Symbols {
 public:
  explicit Symbols(const trace::Store& store) : store_(store) {}

  /// Lives as long as this.
  const Symbol& Of(trace::SpanRow span);

 private:
  const trace::Store& store_;
  std::unordered_map<uint64_t, Symbol> known_;  // by name and kind
};

}  // namespace teller::encode
