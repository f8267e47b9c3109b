/// A matmul as launches: which kernels, how wide, with which parameters. Pure; pointers are
/// addresses on the device and are never followed.
///
///   F32 weights       lh_matmul_f32_{1,8}
///   up to 64 results  lh_prepare_tiles, lh_matmul_few_<type>_{1,2,4,8}
///   more              lh_prepare_tiles, lh_matmul_many_<type>_{64,128} where wgmma adds as
///   mma.sync
///                     does, else the widest of the few, in groups
///
/// Whatever is chosen, a result has the same bits. The order of additions is the shape's: k is cut
/// into slices (device/tiles.hpp), each added up from zero by tensor cores, 16 elements at a time
/// in ascending k, in float; slices are added in ascending order; then come the row's power of two,
/// the bias, and what was there. Tiles that an earlier kernel left are used as they are.
///
/// Errors: none. Weights begin at a multiple of 16 bytes, matrices of one tensor on multiples of
/// what row_size_bytes gives.
#pragma once

#include <vector>

#include "kernels/cuda/device/matmul_params.hpp"
#include "kernels/cuda/kernel_launch.hpp"
#include "kernels/quant/tensor_type.hpp"

namespace leasehold::cuda {

/// What a plan depends on besides the shapes.
struct DeviceProperties {
  std::uint32_t n_sms = 1;
  std::uint32_t max_shared_bytes = 64 * 1024;  ///< Of a block that asks for them.
  bool has_wgmma = false;                      ///< And lh_mma_probe found its sums to be mma's.
};

struct MatmulOperands {
  device::KernelGate gate;
  TensorType type = TensorType::F32;
  std::uint32_t n_out = 0;  ///< Of one matrix.
  std::uint32_t n_in = 0;
  const std::byte* weights = nullptr;
  const float* x = nullptr;               ///< [n_rows, n_in]
  const std::uint32_t* select = nullptr;  ///< [n_results] rows of x; null: row i itself
  device::ExpertAssignment experts = {.chosen = nullptr, .items_per_x = 1};
  std::uint32_t n_experts = 1;
  float* out = nullptr;  ///< [n_results, n_out]
  const float* bias = nullptr;
  bool accumulate = false;
  std::uint32_t n_results = 0;  ///< Most that the launch is for.
  device::ResultCount count = {.is_logit_rows = 0, .per_row = 1};
};

/// Device memory that the launches may use until the next matmul's.
struct MatmulScratch {
  device::TileRows tiles;             ///< Ready ones, or where to put them; n_in as the matmul's.
  bool tiles_are_ready = false;       ///< Of all rows of x, then.
  float* partials = nullptr;          ///< split_bytes; null: slices are taken in turn.
  std::uint32_t* counters = nullptr;  ///< [counter_count] zero, and left so.
};

std::vector<KernelLaunch> plan_matmul(const MatmulOperands& operands, const MatmulScratch& scratch,
                                      const DeviceProperties& card);

/// Rows of floats into tiles, as a launch of its own. Of experts: rows of x, not items.
KernelLaunch plan_prepare_tiles(const MatmulOperands& operands, const device::TileRows& tiles);

/// What `partials` must hold for this matmul; 0: it is not split.
std::uint64_t split_bytes(const MatmulOperands& operands, const DeviceProperties& card);
/// The most for any matmul.
std::uint64_t max_split_bytes(const DeviceProperties& card);
/// For any matmul.
std::uint32_t counter_count(const DeviceProperties& card);

}  // namespace leasehold::cuda
