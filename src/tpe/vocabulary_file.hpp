#pragma once

#include <string>
#include <string_view>

#include "base/status.hpp"
#include "tpe/vocabulary.hpp"

namespace teller::tpe {

/// Version of the file that is written; see docs/reference/tpe-vocabulary.md.
inline constexpr uint32_t kVocabularyVersion = 1;
/// Largest file that is read.
inline constexpr uint64_t kMaxVocabularyBytes = 1u << 30;

/// The bytes of the file: readable header, then the body.
std::string SerializeVocabulary(const Vocabulary& vocabulary);

/// Reads such bytes, however hostile. `path` is for the message only. Errors: kBadFormat (other magic, checksum, cut
/// short, ids that do not stand before their use, shapes that no forest has, bytes left over), kUnsupported (other
/// version), kLimit (too many entries).
base::Result<Vocabulary> ParseVocabulary(std::string_view bytes, const std::string& path = {});

/// Writes the file (beside it first, then renamed). Errors: kUnreadable.
base::Status WriteVocabulary(const Vocabulary& vocabulary, const std::string& path);

/// Reads the file. Errors: those of ParseVocabulary, and kNotFound, kUnreadable, kLimit (larger than
/// kMaxVocabularyBytes).
base::Result<Vocabulary> ReadVocabulary(const std::string& path);

/// One JSON object for people and scripts: classes, and entries with kind, name or pair, and node count, in the order
/// of ids.
std::string VocabularyJson(const Vocabulary& vocabulary);

}  // namespace teller::tpe
