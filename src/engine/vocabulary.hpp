#pragma once

#include <cstdint>
#include <string>

#include "base/status.hpp"
#include "tpe/vocabulary.hpp"

namespace teller::engine {

/// A vocabulary and how it is told apart from others.
struct NamedVocabulary {
  tpe::Vocabulary vocabulary;
  std::string name;          ///< file as given, or "default"
  uint64_t fingerprint = 0;  ///< hash of the file's bytes: tokens are only read with the vocabulary that wrote them
};

/// Reads the file at `path`; the vocabulary that is built into the program when it is empty.
/// Errors: those of tpe::ReadVocabulary.
base::Result<NamedVocabulary> LoadVocabulary(const std::string& path);

/// Names a vocabulary that was not read from a file.
NamedVocabulary WithName(tpe::Vocabulary vocabulary, std::string name);

}  // namespace teller::engine
