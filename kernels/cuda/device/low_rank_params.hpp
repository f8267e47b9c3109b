/// Parameters of the products of adapters. Plain data, the same for the host compiler and nvcc.
/// C++20-clean.
#pragma once

#include "kernels/cuda/device/gate.hpp"

namespace leasehold::device {

/// LowRankMatrix with device addresses.
struct DeviceLowRank {
  std::uint64_t a;  ///< Address of [rank, n_in].
  std::uint64_t b;  ///< Address of [rank, n_out].
  std::uint32_t rank;
  float scale;
  TensorType type;

  bool operator==(const DeviceLowRank&) const = default;
};

/// The adapters of a step, at the same address for every step: the matrix of a slot of sequence s
/// is `matrices[s * n_slots + slot]`.
struct DeviceAdapters {
  const DeviceLowRank* matrices;
  std::uint32_t n_slots;
};

/// LowRankArgs on the device.
struct LowRankParams {
  struct Product {
    float* out;  ///< [n_rows, n_out]
    std::uint32_t n_out;
    std::uint32_t slot;
  };

  KernelGate gate;
  DeviceAdapters adapters;
  const float* x;  ///< [n_rows, n_in]
  float* h;        ///< [n_rows, n_products, max_rank]
  Product products[LowRankArgs::kMaxProducts];
  std::uint32_t n_products;
  std::uint32_t n_in;
  std::uint32_t max_rank;
  std::uint32_t rows_per_block;  ///< 1, or kLowRankRows.
};

/// Neighbouring rows that share each load of a matrix if they have one adapter.
inline constexpr std::uint32_t kLowRankRows = 8;

}  // namespace leasehold::device
