#pragma once

#include <string>

#include "engine/tokens.hpp"

namespace teller::report {

/// Encoded segments as one JSON object, schema "teller.tokens/1" (docs/reference/teller.tokens-1.md), piece by piece:
/// what TokensHead gives, then segments with "," between them, then what TokensTail gives. tokens_read.hpp reads it.
std::string TokensHead(const engine::NamedVocabulary& vocabulary);
std::string TokensSegment(const engine::Run& run, const engine::EncodedSegment& encoded);
std::string TokensTail();

/// A hash as hexadecimal text of 16 digits.
std::string HexText(uint64_t hash);

}  // namespace teller::report
