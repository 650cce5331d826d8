#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/status.hpp"

namespace teller::score {

/// The one JSON object of a small file. Errors: kNotFound, kUnreadable, kBadFormat (no object), kLimit (> 64 MiB).
base::Result<nlohmann::ordered_json> ReadJsonObject(const std::string& path);

/// A text member of an object; empty where there is none.
std::string Text(const nlohmann::ordered_json& object, const char* key);

/// Writes a file as a whole. Errors: kUnreadable (cannot be written).
base::Status WriteText(const std::string& path, std::string_view text);

}  // namespace teller::score
