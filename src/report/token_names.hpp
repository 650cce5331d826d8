#pragma once

#include <string>

#include "tpe/vocabulary.hpp"

namespace teller::report {

/// Names that a vocabulary knows: its entries without merges and without the unknown entry of each class.
uint32_t NameCount(const tpe::Vocabulary& vocabulary);

/// "op aten::mm"; "op (unknown)" of an entry that stands for all names the vocabulary lacks. `id` is no merge.
std::string EntryName(const tpe::Vocabulary& vocabulary, uint32_t id);

/// A token on one line: "op aten::linear > op aten::t, op aten::addmm": ">" goes one down, "," to the next sibling, "^"
/// one up first. At most `most` nodes; what is left out is counted.
std::string FragmentName(const tpe::Vocabulary& vocabulary, uint32_t id, size_t most);

}  // namespace teller::report
