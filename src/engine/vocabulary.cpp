#include "engine/vocabulary.hpp"

#include "engine/default_vocabulary.hpp"
#include "tpe/vocabulary_file.hpp"

namespace teller::engine {

NamedVocabulary WithName(tpe::Vocabulary vocabulary, std::string name) {
  NamedVocabulary out{.vocabulary = std::move(vocabulary), .name = std::move(name)};
  out.fingerprint = tpe::NameHash(tpe::SerializeVocabulary(out.vocabulary));
  return out;
}

base::Result<NamedVocabulary> LoadVocabulary(const std::string& path) {
  if (path.empty()) {
    const std::string_view bytes(reinterpret_cast<const char*>(kDefaultVocabulary), sizeof(kDefaultVocabulary));
    auto read = tpe::ParseVocabulary(bytes, "the built-in vocabulary");
    if (!read) return read.error();
    return WithName(std::move(*read), "default");
  }
  auto read = tpe::ReadVocabulary(path);
  if (!read) return read.error();
  return WithName(std::move(*read), path);
}

}  // namespace teller::engine
