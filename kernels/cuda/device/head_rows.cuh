/// The head norms, rotation and storage of queries, keys and values, by a warp for each head.
///
/// Threads: the whole warp calls each function. The head is in the warp's shared memory; each
/// function leaves it visible to the warp.
#pragma once

#include <type_traits>

#include "kernels/cuda/device/rope_params.hpp"
#include "kernels/cuda/device/tiles.cuh"
#include "kernels/cuda/device/warp_collectives.cuh"
#include "kernels/numerics/f16.hpp"
#include "kernels/numerics/kv_q8.hpp"
#include "kernels/numerics/rope.hpp"

namespace leasehold::device {

/// Normalises the first `width` elements of a head. Null: every weight is 1.
__device__ __forceinline__ void norm_head(const RopeKvAppendParams& p, const float* weight,
                                          std::uint32_t width, float* head) {
  const float mean = warp_dot(head, head, width) / static_cast<float>(width);
  const float factor = 1.0F / sqrtf(mean + p.epsilon);
  __syncwarp();
  for (std::uint32_t d = lane_of_warp(); d < width; d += kWarp)
    head[d] = weight != nullptr ? (head[d] * factor) * weight[d] : head[d] * factor;
  __syncwarp();
}

/// Processes a query or key: applies the norm if there is a weight, and the rotation if there are
/// angles.
__device__ __forceinline__ void prepare_head(const RopeKvAppendParams& p, const float* norm,
                                             std::uint32_t norm_width, std::uint32_t row,
                                             float* head) {
  const std::uint32_t lane = lane_of_warp();
  if (norm != nullptr) norm_head(p, norm, norm_width, head);
  const std::uint32_t pairs = p.rope_dim / 2;
  const float* cos_sin = p.cos_sin + std::size_t{row} * pairs * 2;
  for (std::uint32_t i = lane; i < pairs; i += kWarp)
    rotate_pair(head + p.rope_begin, p.style, i, p.rope_dim, cos_sin);
  __syncwarp();
}

/// Processes a query, which the row's scale multiplies last.
__device__ __forceinline__ void prepare_query(const RopeKvAppendParams& p, std::uint32_t row,
                                              float* head) {
  prepare_head(p, p.q_norm, p.head_dim, row, head);
  if (p.query_scales == nullptr) return;
  for (std::uint32_t d = lane_of_warp(); d < p.head_dim; d += kWarp) head[d] *= p.query_scales[row];
  __syncwarp();
}

/// Processes a key (plane 0) or a value (plane 1).
__device__ __forceinline__ void prepare_stored(const RopeKvAppendParams& p, std::uint32_t row,
                                               std::uint32_t plane, float* head) {
  if (plane == 0) return prepare_head(p, p.k_norm, p.value_dim, row, head);
  if (p.norms_values != 0) norm_head(p, nullptr, p.head_dim, head);
}

/// Same as round_kv. Each lane rounds an element of every block of 32.
__device__ __forceinline__ void store_codes(const float* head, std::uint32_t head_dim,
                                            std::int8_t* codes, Half* scales) {
  static_assert(kKvScaleBlock == kWarp);
  for (std::uint32_t d = lane_of_warp(); d < head_dim; d += kWarp) {
    const Half scale = kv_scale(warp_largest(magnitude_bits(head[d])));
    const float step = f32_from_f16(scale);
    codes[d] = step > 0 ? kv_code(head[d], step) : std::int8_t{0};
    if (lane_of_warp() == 0) scales[d / kKvScaleBlock] = scale;
  }
}

/// Stores a head as keys and values are stored. `scales` is for codes of Q8_0 only.
template <class Stored>
__device__ __forceinline__ void store_head(const float* head, std::uint32_t head_dim,
                                           Stored* elements, Half* scales) {
  if constexpr (std::is_same_v<Stored, std::int8_t>) {
    store_codes(head, head_dim, elements, scales);
  } else {
    for (std::uint32_t d = lane_of_warp(); d < head_dim; d += kWarp) {
      if constexpr (std::is_same_v<Stored, float>)
        elements[d] = head[d];
      else
        elements[d] = f16_from_f32(head[d]);
    }
  }
}

/// Writes the head to the row's position in its sequence's block; plane 0 keys, 1 values.
__device__ __forceinline__ void append_head(const RopeKvAppendParams& p, std::uint32_t row,
                                            std::uint32_t plane, std::uint32_t kv_head,
                                            const float* head) {
  const RowRef ref = p.gate.rows[row];
  const std::uint64_t block =
      p.kv.tables
          .addresses[p.kv.tables.first[ref.sequence] + ref.position / KvLayout::kBlockTokens];
  const std::uint32_t slot = ref.position % KvLayout::kBlockTokens * p.head_dim;
  const std::uint64_t at = block + p.kv.keys_offset_bytes + plane * p.kv.values_bytes +
                           std::uint64_t{kv_head} * p.kv.head_bytes;
  if (p.kv.type == KvType::F32)
    return store_head(head, p.head_dim, reinterpret_cast<float*>(at) + slot, nullptr);
  if (p.kv.type == KvType::F16)
    return store_head(head, p.head_dim, reinterpret_cast<Half*>(at) + slot, nullptr);
  auto* codes = reinterpret_cast<std::int8_t*>(at);
  auto* scales = reinterpret_cast<Half*>(codes + KvLayout::kBlockTokens * p.head_dim);
  store_head(head, p.head_dim, codes + slot, scales + slot / kKvScaleBlock);
}

}  // namespace leasehold::device
