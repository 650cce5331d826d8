#include "base/checksum.hpp"

#include <isa-l/crc.h>

namespace teller::base {

uint32_t Crc32(std::string_view bytes, uint32_t before) {
  return crc32_gzip_refl(before, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

}  // namespace teller::base
