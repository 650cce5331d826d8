// Any bytes as a name. Input: a byte for the kind of span, then the name. The symbol is short, holds no control bytes
// and is the same every time.
#include "encode/symbol.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.hpp"

using namespace teller;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto kind = static_cast<trace::SpanKind>(data[0] % trace::kSpanKinds);
  const std::string_view name(reinterpret_cast<const char*>(data + 1), size - 1);
  const encode::Symbol symbol = encode::Normalize(kind, name);
  TELLER_CHECK(symbol.name.size() <= encode::kMaxSymbolBytes);
  TELLER_CHECK(static_cast<int>(symbol.layer) < encode::kLayers);
  for (const char c : symbol.name) TELLER_CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  TELLER_CHECK(symbol == encode::Normalize(kind, name));
  return 0;
}
