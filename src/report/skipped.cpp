#include "report/skipped.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/units.hpp"

namespace teller::report {

namespace {
constexpr size_t kShown = 5;
}

void AddSkipped(Page& page, const std::vector<engine::Structures::Skipped>& skipped) {
  std::vector<engine::Structures::Skipped> order = skipped;
  std::stable_partition(order.begin(), order.end(), [](const auto& one) { return one.lost; });
  const size_t shown = page.options().all ? order.size() : std::min(order.size(), kShown);
  for (size_t i = 0; i < shown; ++i) page.Field(i == 0 ? "skipped" : "", order[i].path + ": " + order[i].why);
  if (shown < order.size()) page.Field("", fmt::format("{} more (--all shows them)", Count(order.size() - shown)));
}

void AddSkipped(nlohmann::ordered_json& out, const std::vector<engine::Structures::Skipped>& skipped,
                const std::vector<std::string>& lost) {
  nlohmann::ordered_json paths = nlohmann::ordered_json::array();
  nlohmann::ordered_json why = nlohmann::ordered_json::array();
  for (const auto& one : skipped) {
    paths.push_back(one.path);
    why.push_back(one.why);
  }
  out["skipped"] = std::move(paths);
  out["skipped_why"] = std::move(why);
  out["lost_input"] = lost;
}

}  // namespace teller::report
