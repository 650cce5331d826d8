#pragma once

#include <string>
#include <string_view>

#include "engine/engine.hpp"

namespace teller::report {

/// The verdict as one self-contained page: no network, script and style inline and pinned by hash in its content
/// security policy, data as JSON that the script shows as text only. Hostile names stay text.
std::string DiagnosisToHtml(const engine::Run& run, const trace::Diagnosis& diagnosis, bool all);

/// Text for HTML content and attributes.
std::string EscapeHtml(std::string_view text);

/// JSON for a <script> data block: nothing in it can end the block.
std::string ScriptSafe(std::string_view json);

}  // namespace teller::report
