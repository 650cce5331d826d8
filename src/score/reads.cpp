#include "score/reads.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "report/printable.hpp"
#include "score/json_file.hpp"

namespace teller::score {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

std::string ListPath(const std::string& folder) {
  return (fs::path(folder) / "reads.json").string();
}

/// Changes when a file of the case does: when the newest was written, and how many bytes there are.
std::string Stamp(const std::string& folder) {
  std::error_code error;
  int64_t newest = 0;
  uintmax_t bytes = 0;
  for (auto it = fs::recursive_directory_iterator(folder, error); !error && it != fs::recursive_directory_iterator();
       it.increment(error)) {
    std::error_code odd;
    if (!it->is_regular_file(odd)) continue;
    newest = std::max<int64_t>(newest, it->last_write_time(odd).time_since_epoch().count());
    bytes += it->file_size(odd);
  }
  return std::to_string(newest) + "/" + std::to_string(bytes);
}

std::string Whole(const std::string& folder) {
  std::error_code error;
  const fs::path path = fs::canonical(folder, error);
  return report::ValidUtf8(error ? folder : path.string());
}

}  // namespace

base::Result<std::optional<std::vector<std::string>>> NamesRead(const std::string& folder,
                                                                const std::vector<Truth>& cases) {
  const auto refuse = [&](const std::string& why) {
    return base::Error{base::Code::kUsage, why + "; name a new folder to read anew", folder};
  };
  std::error_code error;
  if (!fs::exists(folder, error) || fs::is_empty(folder, error)) return std::optional<std::vector<std::string>>();
  if (!fs::exists(ListPath(folder), error)) return refuse("is there, but no reading of cases that came to its end");
  const auto list = ReadJsonObject(ListPath(folder));
  if (!list) return list.error();
  std::map<std::string, std::pair<std::string, std::string>> known;
  const auto read = list->find("cases");
  if (read == list->end() || !read->is_array()) return refuse("reads.json lists no cases");
  for (const Json& one : *read) known[Text(one, "folder")] = {Text(one, "name"), Text(one, "stamp")};
  std::vector<std::string> names;
  for (const Truth& truth : cases) {
    const auto it = known.find(Whole(truth.folder));
    if (it == known.end() || it->second.first.empty()) return refuse(truth.folder + " was not among the cases read");
    if (it->second.second != Stamp(truth.folder)) return refuse(truth.folder + " has changed since it was read");
    names.push_back(it->second.first);
  }
  return std::optional(std::move(names));
}

base::Status NoteReads(const std::string& folder, const std::vector<Truth>& cases,
                       const std::vector<std::string>& names) {
  Json list = Json::array();
  for (size_t i = 0; i < cases.size(); ++i)
    list.push_back({{"folder", Whole(cases[i].folder)}, {"name", names[i]}, {"stamp", Stamp(cases[i].folder)}});
  return WriteText(ListPath(folder),
                   Json{{"cases", std::move(list)}}.dump(1, ' ', true, Json::error_handler_t::replace) + "\n");
}

}  // namespace teller::score
