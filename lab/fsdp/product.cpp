// A matrix product that can be told to take longer: it stands before the real one in torch's dispatch and repeats it.
// Torch records one call of aten::mm with its own shapes; nothing else shows.
#include <ATen/core/Tensor.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <atomic>
#include <chrono>

namespace {

std::atomic<int64_t> longer_ns{0};

at::Tensor Product(c10::DispatchKeySet keys, const at::Tensor& a, const at::Tensor& b) {
  const auto rest = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::BackendSelect);
  const int64_t longer = longer_ns.exchange(0);  // one product for each order
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(longer);
  at::Tensor result = at::_ops::mm::redispatch(rest, a, b);
  if (longer > 0) {
    at::DisableRecordFunctionGuard unseen;  // what the product calls itself is recorded once, as always
    while (std::chrono::steady_clock::now() < until) {
      result = at::_ops::mm::redispatch(rest, a, b);
    }
  }
  return result;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, BackendSelect, m) {
  m.impl("mm", Product);
}

extern "C" void LengthenNextProduct(int64_t ns) {
  longer_ns = ns;
}
