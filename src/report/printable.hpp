#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace teller::report {

/// Text from the input made safe for a terminal: control bytes, escapes, direction overrides and bytes that are no
/// UTF-8 are shown as \xNN (\u{NNNN} for characters), line breaks and tabs as a blank. At most `max_columns` columns (0
/// = no bound); what is cut off is marked by "…".
std::string Printable(std::string_view text, size_t max_columns = 0);

/// How many terminal columns a printable text takes (East Asian wide characters take two).
size_t Columns(std::string_view text);

/// The same bytes, with what is no UTF-8 replaced by U+FFFD.
std::string ValidUtf8(std::string_view text);

/// First `max_bytes` of a text, cut between characters; what is cut off is marked by "…".
std::string Shortened(std::string_view text, size_t max_bytes);

}  // namespace teller::report
