#pragma once

#include <string_view>

namespace teller::tree {

/// Elements of all tensors in the JSON text of "Input Dims" ([[2, 1, 128], [], [64, 128]] -> 256 + 8192), as a double
/// because hostile dims overflow. 0 for scalars only or text of another form.
double ElementsOfDims(std::string_view dims);

/// Elements of the first tensor alone: the activations that grow with the batch, where weights do not.
double ElementsOfFirstTensor(std::string_view dims);

}  // namespace teller::tree
