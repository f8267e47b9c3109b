#include <utility>

#include "common/expects.hpp"
#include "kernels/cpu/simd_kernels.hpp"

namespace leasehold::simd {

std::string_view missing_for(SimdPath) {
  return "x86-64 instructions";
}

bool passes_self_check(SimdPath) {
  return false;
}

const RowKernels& row_kernels(SimdPath) {
  expects(false, "a path that this CPU has");
  std::unreachable();
}

}  // namespace leasehold::simd
