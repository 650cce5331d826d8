#pragma once

#include <string>

#include "engine/tokens.hpp"
#include "report/sink.hpp"

namespace teller::report {

/// Encoded segments as one JSON object, schema "teller.tokens/1" (docs/reference/teller.tokens-1.md), piece by piece:
/// what TokensHead gives, then WriteTokensSegment's with "," between them, then what TokensTail gives. tokens_read.hpp
/// reads it. Errors: those of the sink.
/// `diagnosis`: that of TokenOptions; null = the run was not diagnosed.
std::string TokensHead(const engine::NamedVocabulary& vocabulary, const trace::Diagnosis* diagnosis);
base::Status WriteTokensSegment(const engine::Run& run, const engine::EncodedSegment& encoded,
                                const trace::Diagnosis* diagnosis, const Sink& sink);
std::string TokensTail();

/// A hash as hexadecimal text of 16 digits.
std::string HexText(uint64_t hash);

}  // namespace teller::report
