#pragma once

#include <string>
#include <string_view>

#include "encode/symbol.hpp"

namespace teller::encode {

/// An interpreter frame as the profiler writes it: "path/file.py(12): function", "<built-in method x of T object at
/// 0x..>", "nn.Module: Name_3". The path starts at the package; the line goes.
Symbol FrameSymbol(std::string_view name);

/// A framework operator: generated numbers, and the sequence numbers that NVTX ranges of operators carry, go.
Symbol OpSymbol(std::string_view name);

/// A range that a program or an engine named. Step marks of engines become "step prefill", "step decode" ...; a range
/// that is an operator in NVTX form is that operator; a module's dotted path is a module.
Symbol RangeSymbol(std::string_view name, Layer layer);

/// A runtime or driver call without the version of its entry point: "cudaLaunchKernel_v7000" -> "cudaLaunchKernel".
std::string ApiName(std::string_view name);

}  // namespace teller::encode
