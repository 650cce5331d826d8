#pragma once

#include <optional>
#include <string_view>

#include "base/nanos.hpp"

namespace teller::ingest::log {

/// Seconds in decimal as Python prints a float ("1795984042.1180155", "0.0038745759993616957", "6.5e-05"), to
/// nanoseconds, exact as far as written. Nothing for other text and for what no time or duration can be.
std::optional<base::Nanos> ParseSeconds(std::string_view text);

/// A duration as Rust prints it ("1.234567s", "12.3ms", "450.2µs", "900ns"), to nanoseconds.
/// Source: Rust std, Debug of core::time::Duration. The unit of microseconds is U+00B5; "us" and U+03BC are taken too.
std::optional<base::Nanos> ParseRustDuration(std::string_view text);

}  // namespace teller::ingest::log
