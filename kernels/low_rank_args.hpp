/// The arguments of the products of adapters, as part of kernels/op_args.hpp. C++20-clean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ipc/segment/launch_site.hpp"
#include "ipc/segment/leased.hpp"
#include "kernels/quant/tensor_type.hpp"

namespace leasehold {

/// The matrices that an adapter adds to one weight W: W·x + scale·B·(A·x) (Hu et al. 2021, LoRA).
struct LowRankMatrix {
  TensorType type = TensorType::F16;  ///< Of both matrices: F32, F16 or BF16.
  std::uint32_t rank = 0;             ///< 0: the adapter does not change this weight.
  float scale = 0.0F;
  Leased<const std::byte> a;  ///< [rank, n_in]
  Leased<const std::byte> b;  ///< [rank, n_out]: B transposed

  bool operator==(const LowRankMatrix&) const = default;
};

/// The matrices of the adapter of each sequence: [n_sequences], each [n_slots]; null for a sequence
/// without an adapter. A *slot* is a weight that adapters may change. Sequences with one adapter
/// have one address.
using AdapterTable = std::span<const LowRankMatrix* const>;

/// What adapters add to the product of one weight.
struct LowRankProduct {
  LaunchSite site;     ///< That of the weight's matmul.
  std::uint32_t slot;  ///< The weight's index in the adapters.
  float* out;          ///< [n_rows, n_out]: the complete product of W
  std::uint32_t n_out;
};

/// h(r, k) = scale · dot(A[k, :], x[r, :]), and out[r, :] += Σ_k B[k, :] · h(r, k), k ascending,
/// one fma each, with the matrices of the row's sequence. x is the f32 input of W's product, never
/// its rounded form. A row whose sequence has no adapter, or one of rank 0, is neither read nor
/// written.
struct LowRankArgs {
  static constexpr std::size_t kMaxProducts = 3;

  AdapterTable adapters;  ///< [n_sequences]
  const float* x;         ///< [n_rows, n_in]
  std::uint32_t n_in;
  /// 1 … kMaxProducts products of the same x. Their outputs overlap neither x nor each other.
  std::span<const LowRankProduct> products;
  std::uint32_t max_rank;  ///< No matrix has a higher rank.
  float* h;                ///< [n_rows, n_products, max_rank], scratch
};

}  // namespace leasehold
