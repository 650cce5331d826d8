#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/log_record.hpp"

namespace teller::logs {

/// A piece of a word that varies, by its form.
struct Hole {
  trace::LogParameter::Kind kind = trace::LogParameter::Kind::kText;
  std::string_view text;
};

/// Replaces what varies by form inside one word: "elapsed=0.23" becomes "elapsed=<float>". `holes` gets what was
/// replaced.
std::string MaskWord(std::string_view word, std::vector<Hole>& holes);

/// "<int>" and so on.
std::string_view Placeholder(trace::LogParameter::Kind kind);

}  // namespace teller::logs
