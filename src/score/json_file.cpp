#include "score/json_file.hpp"

#include <filesystem>
#include <fstream>

namespace teller::score {

namespace {

constexpr uintmax_t kLargest = uintmax_t{64} << 20;

/// Brackets that are open at once, at most; the parser's tree is taken down by recursion.
constexpr int kDeepest = 64;

}  // namespace

base::Result<nlohmann::ordered_json> ReadJsonObject(const std::string& path) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return base::Error{base::Code::kNotFound, "there is no such file", path};
  if (size > kLargest) return base::Error{base::Code::kLimit, "more than 64 MiB", path};
  std::ifstream in(path, std::ios::binary);
  if (!in) return base::Error{base::Code::kUnreadable, "cannot be read", path};
  bool deep = false;
  const auto shallow = [&](int depth, nlohmann::ordered_json::parse_event_t, nlohmann::ordered_json&) {
    deep |= depth > kDeepest;
    return depth <= kDeepest;
  };
  nlohmann::ordered_json object = nlohmann::ordered_json::parse(in, shallow, /*allow_exceptions=*/false);
  if (deep) return base::Error{base::Code::kLimit, "nested more than 64 deep", path};
  if (!object.is_object()) return base::Error{base::Code::kBadFormat, "is no JSON object", path};
  return object;
}

std::string Text(const nlohmann::ordered_json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

base::Status WriteText(const std::string& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (out) return {};
  return base::Error{base::Code::kUnreadable, "cannot be written", path};
}

}  // namespace teller::score
