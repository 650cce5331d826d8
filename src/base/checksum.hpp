#pragma once

#include <cstdint>
#include <string_view>

namespace teller::base {

/// CRC-32 of IEEE 802.3, as gzip and zlib compute it. `before` is the sum of what stands in front.
uint32_t Crc32(std::string_view bytes, uint32_t before = 0);

}  // namespace teller::base
