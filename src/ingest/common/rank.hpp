#pragma once

#include <optional>
#include <string_view>

namespace teller::ingest {

/// Rank that a file's path tells: "rank3", "rank-3", "rank_03", "worker3", "TP-3" in the file's name, or the folder
/// that torchrun makes for each rank ("logs/0/stdout.log"). The last such mark counts. None when the path tells
/// nothing.
std::optional<int> RankFromPath(std::string_view path);

}  // namespace teller::ingest
