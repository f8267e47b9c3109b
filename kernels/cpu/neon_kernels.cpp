#include <sys/auxv.h>

#include <utility>

#include "common/expects.hpp"
#include "kernels/cpu/neon/activations.hpp"
#include "kernels/cpu/neon/attention.hpp"
#include "kernels/cpu/neon/int8.hpp"
#include "kernels/cpu/neon/rows.hpp"
#include "kernels/cpu/simd_kernels.hpp"

namespace leasehold::simd {
namespace {

/// Replaces what takes most of a step's time. The other functions are those of plain C++.
RowKernels neon_kernels() {
  RowKernels kernels = leasehold::row_kernels(SimdPath::Scalar);
  kernels.dot_tile = neon::dot_tile;
  kernels.dot_tile_macs = 100'000;
  kernels.dot_groups_int8 = neon::dot_groups_int8;
  kernels.int8_units = kernels.int8_units_few_rows = {.tile_macs = 300'000};
  kernels.round_row = neon::round_row;
  kernels.rms_norm_row = neon::rms_norm_row;
  kernels.add_scaled = neon::add_scaled;
  kernels.attend = neon::attend;
  return kernels;
}

/// Source: Linux, uapi/asm/hwcap.h (HWCAP_ASIMDDP).
bool has_dot_products() {
  constexpr unsigned long kAsimdDp = 1ul << 20;
  return (::getauxval(AT_HWCAP) & kAsimdDp) != 0;
}

}  // namespace

std::string_view missing_for(SimdPath path) {
  if (path != SimdPath::Neon) return "x86-64 instructions";
  return has_dot_products() ? "" : "the dot products of ARMv8.2";
}

bool passes_self_check(SimdPath path) {
  return path == SimdPath::Neon;
}

const RowKernels& row_kernels(SimdPath path) {
  expects(path == SimdPath::Neon, "a path that this CPU has");
  static const RowKernels kernels = neon_kernels();
  return kernels;
}

}  // namespace leasehold::simd
