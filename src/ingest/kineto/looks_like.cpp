#include "ingest/kineto/kineto.hpp"

namespace teller::ingest {

namespace {

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool LooksLikeEvent(std::string_view text) {
  return Has(text, "\"ph\"") && Has(text, "\"ts\"");
}

}  // namespace

bool LooksLikeKineto(std::string_view head) {
  size_t at = head.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (at == std::string_view::npos) return false;
  const std::string_view text = head.substr(at);
  if (text.front() == '{') {
    return Has(text, "\"traceEvents\"") || (Has(text, "\"schemaVersion\"") && Has(text, "\"deviceProperties\"")) ||
           Has(text, "\"baseTimeNanoseconds\"");
  }
  if (text.front() != '[') return false;
  at = text.find_first_not_of(" \t\r\n", 1);
  return at != std::string_view::npos && text[at] == '{' && LooksLikeEvent(text);
}

}  // namespace teller::ingest
