#include "encode/symbol_ids.hpp"

namespace teller::encode {

base::Status AddLayers(tpe::Corpus& corpus) {
  for (int layer = 0; layer < kLayers; ++layer) {
    const auto added = corpus.AddClass(Name(static_cast<Layer>(layer)));
    if (!added) return added.error();
  }
  return {};
}

base::Result<std::vector<uint32_t>> CorpusSymbols::Of(std::span<const uint32_t> rows, const SymbolTable& table) {
  for (uint32_t row = static_cast<uint32_t>(ids_.size()); row < table.size(); ++row) {
    const auto cls = corpus_.AddClass(Name(table.At(row).layer));
    if (!cls) return cls.error();
    const auto id = corpus_.AddSymbol(*cls, table.At(row).name);
    if (!id) return id.error();
    ids_.push_back(*id);
  }
  std::vector<uint32_t> out;
  out.reserve(rows.size());
  for (const uint32_t row : rows) out.push_back(ids_[row]);
  return out;
}

VocabularySymbols::VocabularySymbols(const tpe::Vocabulary& vocabulary, const SymbolTable& table)
    : vocabulary_(vocabulary), table_(table) {
  for (int layer = 0; layer < kLayers; ++layer) {
    classes_.push_back(vocabulary.FindClass(Name(static_cast<Layer>(layer))).value_or(UINT32_MAX));
  }
}

base::Status VocabularySymbols::Check() const {
  for (int layer = 0; layer < kLayers; ++layer) {
    if (classes_[static_cast<size_t>(layer)] != UINT32_MAX) continue;
    return base::Error{.code = base::Code::kBadFormat,
                       .message = "the vocabulary has no class \"" + std::string(Name(static_cast<Layer>(layer))) +
                                  "\"; train one with teller tpe train"};
  }
  return {};
}

std::vector<uint32_t> VocabularySymbols::Of(std::span<const uint32_t> rows, std::vector<UnknownNode>* unknown) {
  for (uint32_t row = static_cast<uint32_t>(symbols_.size()); row < table_.size(); ++row) {
    const Symbol& symbol = table_.At(row);
    symbols_.push_back(vocabulary_.SymbolFor(classes_[static_cast<size_t>(symbol.layer)], symbol.name));
  }
  std::vector<uint32_t> out;
  out.reserve(rows.size());
  for (size_t node = 0; node < rows.size(); ++node) {
    const tpe::Symbol& symbol = symbols_[rows[node]];
    out.push_back(symbol.id);
    if (unknown != nullptr && !symbol.known) unknown->push_back({static_cast<uint32_t>(node), symbol.name_hash});
  }
  return out;
}

}  // namespace teller::encode
