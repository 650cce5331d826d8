#pragma once

#include <string>
#include <string_view>

namespace teller::ingest {

/// Copies JSON text, replacing bytes that are not UTF-8 by U+FFFD and raw control characters by blanks.
/// Returns true when a string in it was changed (white space between tokens does not count).
bool MakeValidText(std::string_view json, std::string& out);

/// The text with bytes that are not UTF-8 replaced by U+FFFD.
std::string ReplaceInvalid(std::string_view text);

/// Content of a JSON string (without its quotes) with escapes resolved, appended to `out`. Bad escapes stay as written;
/// lone surrogates become U+FFFD.
void Unescape(std::string_view inside, std::string& out);

/// Short printable form of hostile text, for messages: control characters and non-ASCII become '?', at most 40 bytes.
std::string Snippet(std::string_view text);

}  // namespace teller::ingest
