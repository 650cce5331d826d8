#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/structures.hpp"

namespace teller::engine {

/// Numbers as varints (7 bits a byte, low first); with `depths`, after each number the signed difference to the depth
/// before it, zigzag.
std::string EncodedBytes(std::span<const uint32_t> numbers, std::span<const uint32_t> depths);

/// Size under gzip -9 (its header and trailer included) and under zstd -19.
uint64_t GzipBytes(std::string_view bytes);
uint64_t ZstdBytes(std::string_view bytes);

/// The forests as flat sequences from which they can be told again: names in pre-order, and after each name one closing
/// mark for every node that ends before the next one begins; marks at the end of a forest are left out. All depths are
/// 0.
Structures WithClosingMarks(const Structures& structures);

/// The same with the closing marks folded into the name before them: as many names as nodes.
Structures WithFoldedMarks(const Structures& structures);

}  // namespace teller::engine
