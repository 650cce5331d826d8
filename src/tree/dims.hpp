#pragma once

#include <string_view>

namespace teller::tree {

/// Elements of the first non-empty tensor in the JSON text of "Input Dims" ([[], [2, 1, 128], [64, 128]] -> 256): the
/// activations that grow with the batch, where weights do not. At most 1e15; 0 for scalars only or text of another form.
double ElementsOfFirstTensor(std::string_view dims);

}  // namespace teller::tree
