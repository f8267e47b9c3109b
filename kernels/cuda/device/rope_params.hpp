/// Parameters of head rotation and of the append of keys and values. C++20-clean.
#pragma once

#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/device/kv_addressing.hpp"

namespace leasehold::device {

inline constexpr std::uint32_t kMaxHeadDim = 576;

/// Everything between the projections and attention: head norms, rotation, append. Queries are
/// updated in place. Keys and values go into the blocks; the arrays here do not change.
struct RopeKvAppendParams {
  KernelGate gate;
  KvAddressing kv;
  float* q = nullptr;                   ///< [n_rows, n_heads, head_dim]
  const float* k;                       ///< [n_rows, n_kv_heads, head_dim], or null
  const float* v;                       ///< [n_rows, n_kv_heads, head_dim]; null: latent keys
  const float* q_norm = nullptr;        ///< [head_dim]; null: none
  const float* k_norm = nullptr;        ///< [value_dim]; null: none
  const float* cos_sin = nullptr;       ///< [n_rows, rope_dim/2, 2]
  const float* query_scales = nullptr;  ///< [n_rows]; null: queries keep their length.
  std::uint32_t n_heads = 0;            ///< 0: queries are skipped.
  std::uint32_t n_kv_heads;             ///< 0: only queries are prepared.
  std::uint32_t head_dim;
  std::uint32_t value_dim;         ///< Elements of a key that its norm covers.
  std::uint32_t norms_values = 0;  ///< Not 0: values have a norm without a weight.
  std::uint32_t rope_begin = 0;    ///< The first rotated element of a head.
  std::uint32_t rope_dim = 0;      ///< 0: no rotation.
  float epsilon = 0.0F;            ///< The epsilon of the norms.
  RopeStyle style = RopeStyle::Interleaved;
};

/// The heads of a row that the kernel processes.
LEASEHOLD_HD constexpr std::uint32_t head_count(const RopeKvAppendParams& p) {
  return p.n_heads + (p.v != nullptr ? 2 : 1) * p.n_kv_heads;
}

}  // namespace leasehold::device
