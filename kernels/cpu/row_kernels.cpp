#include "kernels/cpu/row_kernels.hpp"

#include <algorithm>
#include <array>

#include "kernels/cpu/scalar_rows.hpp"
#include "kernels/cpu/simd_kernels.hpp"
#include "kernels/cpu/tiling.hpp"
#include "kernels/numerics/kv_q8.hpp"
#include "kernels/quant/dequantize.hpp"
#include "kernels/recurrent_rows.hpp"

namespace leasehold {
namespace {

constexpr std::array<std::string_view, std::size(kSimdPaths)> kNames = {
    "scalar", "avx2", "avx-vnni", "avx512", "amx", "neon"};

constexpr RowKernels kScalar{.dequantize_row = dequantize_row,
                             .dot_tile = scalar::dot_tile,
                             .dot_tile_outputs = kDotOutputGroup,
                             .dot_tile_macs = kTileMacs,
                             .round_row = round_row,
                             .dot_groups_int8 = scalar::dot_groups_int8,
                             .store_dots = scalar::store_dots,
                             .int8_units = {.tile_macs = kTileMacs},
                             .rms_norm_row = scalar::rms_norm_row,
                             .swiglu = scalar::swiglu,
                             .softcap = scalar::softcap,
                             .add_scaled = scalar::add_scaled,
                             .add_low_rank = scalar::add_low_rank,
                             .convolve = convolve_channels,
                             .advance_state = scalar::advance_state,
                             .state_tile_macs = kTileMacs,
                             .rope_head = scalar::rope_head,
                             .store_kv = scalar::store_kv,
                             .round_kv = round_kv,
                             .attend = scalar::attend,
                             .attend_tile_macs = kTileMacs,
                             .merge = merge_partials};

}  // namespace

std::string_view name(SimdPath path) {
  return kNames[static_cast<std::size_t>(path)];
}

std::optional<SimdPath> simd_path_from_name(std::string_view text) {
  const auto* found = std::ranges::find(kNames, text);
  if (found == kNames.end()) return std::nullopt;
  return kSimdPaths[found - kNames.begin()];
}

std::string_view missing_for(SimdPath path) {
  return path == SimdPath::Scalar ? "" : simd::missing_for(path);
}

bool cpu_has(SimdPath path) {
  return missing_for(path).empty();
}

bool passes_self_check(SimdPath path) {
  return path == SimdPath::Scalar || simd::passes_self_check(path);
}

SimdPath best_simd_path() {
  SimdPath best = SimdPath::Scalar;
  for (const SimdPath path : kSimdPaths)
    if (cpu_has(path) && passes_self_check(path)) best = path;
  return best;
}

const RowKernels& row_kernels(SimdPath path) {
  return path == SimdPath::Scalar ? kScalar : simd::row_kernels(path);
}

}  // namespace leasehold
