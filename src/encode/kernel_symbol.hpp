#pragma once

#include <string>
#include <string_view>

namespace teller::encode {

/// A kernel's function without template arguments, parameters, namespaces, mangling, architecture, tiles and data types
/// of library kernels; kernels that only run what a template argument says keep that functor:
/// "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, ...>(...)" -> "elementwise[add]",
/// "ampere_sgemm_32x128_nn" -> "sgemm_nn", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)" -> "nccl:AllReduce".
std::string KernelName(std::string_view name);

}  // namespace teller::encode
