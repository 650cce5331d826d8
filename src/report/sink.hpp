#pragma once

#include <functional>
#include <string_view>

#include "base/status.hpp"

namespace teller::report {

/// Takes the next piece of output. Errors: kUnreadable when the system refuses it.
using Sink = std::function<base::Status(std::string_view)>;

}  // namespace teller::report
