#pragma once

#include <string>
#include <vector>

#include "inject/sim/layout.hpp"

namespace teller::inject::sim {

/// Fills in what the host does around the launch of an operation: operators in one another down to the one that
/// launches, views and allocations that launch nothing, and questions to the runtime.
void AddHostWork(Op& op, Engine engine);

/// One kernel of a role that eager code computes piece by piece.
struct Piece {
  const char* path = "";
  const char* kernel = "";
};

/// The pieces of a role; empty where one kernel does it.
const std::vector<Piece>& Pieces(Role role, Engine engine);
/// Makes an operation one of the pieces of its role.
void BecomePiece(Op& op, const Piece& piece);

/// Members of an operator's args about its inputs, as the profiler writes them for lists of sizes.
std::string InputMembers(const std::vector<std::vector<int64_t>>& dims);

}  // namespace teller::inject::sim
