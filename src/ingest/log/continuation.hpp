#pragma once

#include <string>
#include <string_view>

namespace teller::ingest::log {

inline constexpr std::string_view kTracebackHead = "Traceback (most recent call last):";

bool IsTracebackHead(std::string_view text);
/// "During handling of the above exception ..": between the tracebacks of a chain.
bool IsChainMark(std::string_view text);
/// "Process EngineCore:": what multiprocessing prints before the traceback of a child.
bool IsProcessHead(std::string_view text);
/// Lines that torch and CUDA add below the exception.
bool IsExceptionTail(std::string_view text);
/// "pkg.module.Error: text", "KeyboardInterrupt": an identifier path, alone or before a colon.
bool LooksLikeException(std::string_view text);
/// The final "Type: text" of the last traceback inside a message of several lines; empty when it holds none.
std::string_view ExceptionInside(std::string_view message);

/// What a program prints for people and no logger wrote: rulers, rows of tables, "#" comments, banners, the marks of a
/// chat template. Judged by the form of the line alone.
/// Source: docs/reference/log-grammars.md, section 2.
bool IsProgramOutput(std::string_view text);

/// Where another writer's record begins inside `line` (after its first character), because the writer before was cut:
/// '{"timestamp":' of TGI's JSON form, "2026-..Z  INFO" of its text form. npos when nowhere.
size_t GluedRecord(std::string_view line);

/// Whether a quotation that opens in `text` is still open at its end: "example_format: '<|im_start|>system".
bool LeavesQuoteOpen(std::string_view text);

}  // namespace teller::ingest::log
