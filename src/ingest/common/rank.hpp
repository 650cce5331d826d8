#pragma once

#include <optional>
#include <string_view>

namespace teller::ingest {

/// Rank that a file's path or an object's key tells, in this order: "rank3", "rank-3", "rank_03", "rank=3", "worker3",
/// "TP-3" in the file's name, the last such mark; "_r12_"; the folder that torchrun makes for each rank
/// ("logs/0/stdout.log"); such marks in folders, the innermost first ("prefix/rank=3/trace.json.gz",
/// "worker-7/trace.json"); "gpu5" or "local_rank5", but not below a node other than the first ("node2/gpu5" does not
/// tell how many GPUs the nodes before have). Percent-escapes are read. None when the path tells nothing.
std::optional<int> RankFromPath(std::string_view path);

}  // namespace teller::ingest
