#include "report/diagnosis_html.hpp"

#include <fmt/format.h>

#include "report/assets.hpp"
#include "report/diagnosis_json.hpp"
#include "report/diagnosis_text.hpp"
#include "report/printable.hpp"
#include "report/view_json.hpp"

namespace teller::report {

std::string EscapeHtml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string ScriptSafe(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    switch (c) {
      case '&': out += "\\u0026"; break;
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      default: out += c;
    }
  }
  return out;
}

std::string DiagnosisToHtml(const engine::Run& run, const trace::Diagnosis& diagnosis, bool all) {
  const nlohmann::ordered_json data = {{"diagnosis", DiagnosisToJson(run, diagnosis, all)},
                                       {"view", ViewToJson(run, diagnosis)}};
  const std::string json = data.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
  const std::string plain = DiagnosisToText(run, diagnosis, {.width = 100, .color = false, .all = all});
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-{}'; "
      "style-src 'sha256-{}'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>TELLER: {}</title>\n",
      assets::kPageJsSha256, assets::kPageCssSha256, Name(diagnosis.status));
  out.append("<style>").append(assets::kPageCss).append("</style>\n</head>\n<body>\n");
  out.append("<noscript><pre>").append(EscapeHtml(plain)).append("</pre></noscript>\n<div id=\"page\"></div>\n");
  out.append("<script type=\"application/json\" id=\"data\">").append(ScriptSafe(json)).append("</script>\n");
  out.append("<script>").append(assets::kPageJs).append("</script>\n</body>\n</html>\n");
  return out;
}

}  // namespace teller::report
