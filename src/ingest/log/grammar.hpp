#pragma once

#include <functional>
#include <string_view>

#include "ingest/log/parsed_line.hpp"

namespace teller::ingest::log {

/// Each grammar looks at a line without prefixes and fills `out` when the line is its own.
/// Source: docs/reference/log-grammars.md, one section each.
bool ParseKernel(std::string_view line, const Origin& origin, ParsedLine& out);
bool ParseVllm(std::string_view line, ParsedLine& out);
bool ParseBracketed(std::string_view line, ParsedLine& out);
bool ParseRust(std::string_view line, ParsedLine& out);
bool ParseStamped(std::string_view line, ParsedLine& out);
bool ParseGlog(std::string_view line, ParsedLine& out);
bool ParseTritonIso(std::string_view line, ParsedLine& out);
bool ParseKineto(std::string_view line, ParsedLine& out);
bool ParseLlama(std::string_view line, ParsedLine& out);
bool ParseNccl(std::string_view line, ParsedLine& out);
bool ParseUvicorn(std::string_view line, ParsedLine& out);
bool ParseLevelFirst(std::string_view line, ParsedLine& out);
bool ParseJson(std::string_view line, ParsedLine& out);

/// The bare form of llama.cpp's lines, without time and level.
bool LooksLikeLlama(std::string_view line);
/// "name_of_function: text" as llama.cpp's programs print it: theirs only in a log where others are.
bool LooksLikeFunctionLine(std::string_view line);

/// Times of a request that TGI writes into its span, read by `field`, as total_ms, queue_ms and so on.
void PutTgiTimes(const std::function<std::string_view(std::string_view)>& field, Statistics& out);

/// "[file.py:12] " or "file.py:12] " at the front of `rest`: taken off and returned without brackets.
std::string_view TakeFileInfo(std::string_view& rest);

}  // namespace teller::ingest::log
