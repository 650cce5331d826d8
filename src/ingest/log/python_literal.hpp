#pragma once

#include <functional>
#include <string_view>

namespace teller::ingest::log {

/// Walks over the items of a Python dict as repr() prints it: `text` begins with "{". `item` gets the key without
/// quotes and the text of the value ("'x'", "12", "{...}"), which may be cut where the text ends early. Nothing is
/// unescaped, nested values are not walked into. Returns whether the closing brace was reached.
bool ForEachDictItem(std::string_view text, const std::function<void(std::string_view, std::string_view)>& item);

/// A quoted text without its quotes; other text unchanged.
std::string_view Unquoted(std::string_view text);

}  // namespace teller::ingest::log
