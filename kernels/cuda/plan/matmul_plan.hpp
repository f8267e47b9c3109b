/// Plans a matmul as launches: kernels, grids and parameters. Pure; pointers are device addresses
/// and are never followed.
///
///   row groups        lh_round_rows, then one of
///       up to 8 results on cards that start kernels early: lh_matmul_early_<type>_{1,2,8}
///       more, enough for half of the SMs, with wgmma, all types but IQ4_XS:
///                     lh_matmul_int8_many_<type>_{32,64,128}
///       otherwise     lh_matmul_int8_<type>_{1,2,8,32,64}
///   F32 weights       lh_matmul_f32_{1,8}
///   exact rows        lh_matmul_rows_{1,8}
///   up to 64 results  lh_prepare_tiles, lh_matmul_few_<type>_{1,2,4,8}
///   more              lh_prepare_tiles, lh_matmul_many_<type>_{64,128} if wgmma adds as mma.sync
///                     does; otherwise the widest few-rows kernel, in groups
///
/// Launches of few rows, and of int8, may be split: several blocks share a row, and the last one
/// adds their parts. Every choice among kernels of one form gives the same bits. The first three
/// forms have the bits of the CPU. For halves, the shape alone decides the order of additions: k is
/// cut into slices (device/tiles.hpp). Tensor cores add each slice from zero in float, 16 elements
/// at a time in ascending k. Slices are added in ascending order, then the row's power of two is
/// applied, then the bias and the previous value are added. Tiles that an earlier kernel stored are
/// used as they are.
///
/// Errors: none. Weights begin at a multiple of 16 bytes; each matrix of a tensor begins at a
/// multiple of row_size_bytes.
#pragma once

#include <span>
#include <vector>

#include "kernels/cuda/device/int8/early_params.hpp"
#include "kernels/cuda/device/matmul_params.hpp"
#include "kernels/cuda/kernel_launch.hpp"
#include "kernels/quant/tensor_type.hpp"

namespace leasehold::cuda {

/// The properties of the card on which a plan depends.
struct DeviceProperties {
  std::uint32_t n_sms = 1;
  std::uint32_t max_shared_bytes = 64 * 1024;  ///< Per block that requests it.
  bool has_wgmma = false;  ///< wgmma exists and has the sums of mma.sync (lh_mma_probe).
  /// Int8 matmuls of up to eight rows may start before the previous kernel has ended.
  bool starts_early = false;
};

struct MatmulOperands {
  device::KernelGate gate;
  TensorType type = TensorType::F32;
  MatrixLayout layout = MatrixLayout::Rows;
  bool is_exact = false;    ///< Rows are multiplied as floats in the CPU's order, not as halves.
  std::uint32_t n_out = 0;  ///< Outputs per matrix.
  std::uint32_t n_in = 0;
  const std::byte* weights = nullptr;
  const float* x = nullptr;               ///< [n_rows, n_in]
  const std::uint32_t* select = nullptr;  ///< [n_results] rows of x; null: row i itself
  device::ExpertAssignment experts = {.chosen = nullptr, .items_per_x = 1};
  std::uint32_t n_experts = 1;
  float* out = nullptr;          ///< [n_results, n_out], out_stride apart
  std::uint32_t out_stride = 0;  ///< 0: n_out
  const float* bias = nullptr;
  bool accumulate = false;
  std::uint32_t n_results = 0;  ///< The maximum for this launch.
  device::ResultCount count = {.is_logit_rows = 0, .per_row = 1};
};

/// Device memory that the launches may use until the next matmul.
struct MatmulScratch {
  device::TileRows tiles;             ///< Prepared tiles, or room for them; n_in is the matmul's.
  device::Int8Rows rounded = {};      ///< The same for matrices of row groups.
  bool rows_are_prepared = false;     ///< True if all rows of x have tiles, or are rounded.
  float* partials = nullptr;          ///< split_bytes; null: no launch is split.
  std::uint32_t* counters = nullptr;  ///< [counter_count], zero before and after.
  /// What happens to the products of gate and up; only if gates_products() allows it.
  device::GatedProducts gated = {};
  /// The norm whose output is x; only if norms_rows() allows it. Then x is not read.
  device::RowNorm norm = {};
};

/// Matmuls of the same x, select, experts and count. One launch computes all of them after x is
/// prepared. joined_matmuls() limits the size of a group.
using MatmulGroup = std::span<const MatmulOperands>;

/// The number of leading matmuls that one launch can compute: up to three neighbours of one type
/// and layout that all add to `out` or all store there. Matmuls with F32 weights, exact rows or
/// experts are not joined. The bits are the same as with one launch each.
std::size_t joined_matmuls(MatmulGroup neighbours);

std::vector<KernelLaunch> plan_matmul(MatmulGroup group, const MatmulScratch& scratch,
                                      const DeviceProperties& card);
inline std::vector<KernelLaunch> plan_matmul(const MatmulOperands& one,
                                             const MatmulScratch& scratch,
                                             const DeviceProperties& card) {
  return plan_matmul(MatmulGroup(&one, 1), scratch, card);
}

/// Plans a launch that stores rows of floats as tiles. With experts it stores rows of x, not items.
KernelLaunch plan_prepare_tiles(const MatmulOperands& operands, const device::TileRows& tiles);

/// The size of `partials` for these matmuls; 0 if their launch is not split.
std::uint64_t split_bytes(MatmulGroup group, const DeviceProperties& card);
inline std::uint64_t split_bytes(const MatmulOperands& one, const DeviceProperties& card) {
  return split_bytes(MatmulGroup(&one, 1), card);
}
/// The maximum of split_bytes over all matmuls.
std::uint64_t max_split_bytes(const DeviceProperties& card);
/// The maximum number of counters over all matmuls.
std::uint32_t counter_count(const DeviceProperties& card);

}  // namespace leasehold::cuda
