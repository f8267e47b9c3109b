#include "kernels/cpu/simd_kernels.hpp"

#include <utility>

#include "common/expects.hpp"
#include "kernels/cpu/amx/int8.hpp"
#include "kernels/cpu/amx/support.hpp"
#include "kernels/cpu/avx2/attention.hpp"
#include "kernels/cpu/avx2/dequantize.hpp"
#include "kernels/cpu/avx2/dots.hpp"
#include "kernels/cpu/avx2/int8.hpp"
#include "kernels/cpu/avx2/low_rank.hpp"
#include "kernels/cpu/avx2/recurrence.hpp"
#include "kernels/cpu/avx2/rows.hpp"
#include "kernels/cpu/avx512/activations.hpp"
#include "kernels/cpu/avx512/attention.hpp"
#include "kernels/cpu/avx512/int8.hpp"
#include "kernels/cpu/avx512/low_rank.hpp"
#include "kernels/cpu/avx512/recurrence.hpp"
#include "kernels/cpu/avx512/rows.hpp"
#include "kernels/cpu/avx_vnni/int8.hpp"
#include "kernels/cpu/scalar_rows.hpp"
#include "kernels/cpu/self_check.hpp"
#include "kernels/cpu/tiling.hpp"

namespace leasehold::simd {
namespace {

constexpr RowKernels kAvx2{.dequantize_row = avx2::dequantize_row,
                           .dot_tile = avx2::dot_tile,
                           .dot_tile_outputs = kDotOutputGroup,
                           .dot_tile_macs = 320'000,
                           .round_row = avx2::round_row,
                           .dot_groups_int8 = avx2::dot_groups_int8,
                           .store_dots = scalar::store_dots,
                           .int8_units = {.tile_macs = 600'000},
                           .rms_norm_row = avx2::rms_norm_row,
                           .swiglu = avx2::swiglu,
                           .softcap = avx2::softcap,
                           .add_scaled = avx2::add_scaled,
                           .add_low_rank = avx2::add_low_rank,
                           .convolve = avx2::convolve,
                           .advance_state = avx2::advance_state,
                           .state_tile_macs = 150'000,
                           .rope_head = avx2::rope_head,
                           .store_kv = avx2::store_kv,
                           .round_kv = avx2::round_kv,
                           .attend = avx2::attend,
                           .attend_tile_macs = 450'000,
                           .merge = avx2::merge};

constexpr RowKernels kAvxVnni = [] {
  RowKernels kernels = kAvx2;
  kernels.dot_groups_int8 = avx_vnni::dot_groups_int8;
  return kernels;
}();

/// Replaces the functions that take most of a step's time. The others are those of AVX2.
constexpr RowKernels kAvx512 = [] {
  RowKernels kernels = kAvx2;
  kernels.round_row = avx512::round_row;
  kernels.swiglu = avx512::swiglu;
  kernels.dot_tile = avx512::dot_tile;
  kernels.dot_tile_outputs = kDotOutputs;
  kernels.dot_tile_macs = 500'000;
  kernels.add_low_rank = avx512::add_low_rank;
  kernels.attend = avx512::attend;
  kernels.attend_tile_macs = 300'000;
  kernels.merge = avx512::merge;
  kernels.advance_state = avx512::advance_state;
  kernels.state_tile_macs = 300'000;
  return kernels;
}();

constexpr RowKernels kAvx512Vnni = [] {
  RowKernels kernels = kAvx512;
  kernels.dot_groups_int8 = avx512::dot_groups_int8;
  kernels.store_dots = avx512::store_dots;
  kernels.int8_units = {.tile_macs = 1'600'000, .groups_at_once = 2};
  kernels.int8_units_few_rows = kernels.int8_units;
  return kernels;
}();

/// Below kLeastTileRows rows, AMX uses the dots and units of AVX-512. No CPU with AMX has run this
/// path yet: tests run it on emulated tiles, and the size of a unit assumes twice the speed of
/// AVX-512.
constexpr RowKernels kAmx = [] {
  RowKernels kernels = kAvx512Vnni;
  kernels.dot_groups_int8 = amx::dot_groups_int8;
  kernels.end_int8_unit = amx::end_int8_unit;
  kernels.int8_units = {.tile_macs = 3'200'000, .groups_at_once = 1, .min_rows = kInt8TileRows};
  kernels.int8_few_rows = amx::kLeastTileRows;
  return kernels;
}();

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
}

bool has_vnni() {
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
}

}  // namespace

std::string_view missing_for(SimdPath path) {
  switch (path) {
    case SimdPath::Scalar:
      return {};
    case SimdPath::Avx2:
      return has_avx2() ? "" : "AVX2, FMA or F16C";
    case SimdPath::AvxVnni:
      return has_avx2() && __builtin_cpu_supports("avxvnni") ? "" : "AVX2 or AVX-VNNI";
    case SimdPath::Avx512:
      return has_avx2() && has_avx512() ? "" : "AVX2, AVX-512F or AVX-512DQ";
    case SimdPath::Amx:
      return has_avx2() ? amx::missing(amx::support()) : "AVX2";
    case SimdPath::Neon:
      return "ARM64";
  }
  return "a known name";
}

bool passes_self_check(SimdPath path) {
  if (path != SimdPath::Amx) return true;
  static const bool passes = matches_scalar_dots(kAmx);
  return passes;
}

const RowKernels& row_kernels(SimdPath path) {
  switch (path) {
    case SimdPath::Scalar:
    case SimdPath::Neon:
      break;
    case SimdPath::Avx2:
      return kAvx2;
    case SimdPath::AvxVnni:
      return kAvxVnni;
    case SimdPath::Avx512:
      return has_vnni() ? kAvx512Vnni : kAvx512;
    case SimdPath::Amx:
      return kAmx;
  }
  expects(false, "a path that this CPU has");
  std::unreachable();
}

}  // namespace leasehold::simd
