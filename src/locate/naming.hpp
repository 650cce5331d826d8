#pragma once

#include <string>

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// A duration inside a sentence: "0.42 ms", "417 ms".
std::string Ms(trace::Nanos ns);

/// The engine's own name of a traced process; where the file names none, from its place in the run.
std::string ProcessName(const trace::Store& store, trace::ProcessRow process);

/// The process that works between the steps of `process`: the scheduler, which some engines run elsewhere.
std::string SchedulerName(const trace::Store& store, trace::ProcessRow process);

/// True when the scheduler is another process than the one that runs the steps.
bool SchedulerIsElsewhere(const trace::Store& store, trace::ProcessRow process);

/// The module that a thread works in at a time, where FSDP says when it enters and leaves one ("FSDP::pre_forward
/// (layers.1)"); empty when it does not. Source: torch.distributed.fsdp, `record_function` of its parameter groups.
std::string ModuleInProgress(const trace::Store& store, trace::TrackRow track, trace::Nanos at);

/// Module path of a place in a trace: nn.Module frames above it ("LlamaModel_0/DecoderLayer_2/MLP_2"), an engine's
/// layer annotation ("layers.2"), the module that FSDP has entered, or the label of the operator ("ffn_out-19"); empty
/// when the trace names none. Wrapper modules that hold one module are followed down to it.
std::string ModuleAt(const trace::Store& store, uint32_t span);

/// What a kernel that a graph replayed was aligned to, where that is sure; null otherwise.
const trace::GraphOrigin* SureOrigin(const trace::Trees& trees, uint32_t span);

/// The innermost interpreter frame or annotation on `span`'s track that covers most of [begin, end); kNoSpan when none.
uint32_t FrameOver(const trace::Store& store, trace::TrackRow track, trace::Nanos begin, trace::Nanos end);

/// What a stretch of host time was spent on, as far as the trace tells.
enum class HostTime : uint8_t {
  kUnknown,     ///< no interpreter frames there: work and standing still look alike
  kWorking,     ///< frames come and go all along
  kBlocked,     ///< inside one library call that is known by name (sleep, read, a lock)
  kCollecting,  ///< inside the garbage collector
  kStopped,     ///< frames were open but nothing ended
};

/// Reads the interpreter frames of a track in [begin, end).
HostTime ReadHostTime(const trace::Store& store, trace::TrackRow track, trace::Nanos begin, trace::Nanos end);

}  // namespace teller::locate
