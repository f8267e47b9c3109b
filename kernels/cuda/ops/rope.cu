/// Head norms, rotation and scale of heads, and the append of keys and values.
#include "kernels/cuda/device/rope_params.hpp"
#include "kernels/cuda/device/tiles.cuh"
#include "kernels/cuda/device/warp_collectives.cuh"
#include "kernels/numerics/f16.hpp"
#include "kernels/numerics/kv_q8.hpp"
#include "kernels/numerics/rope.hpp"

namespace leasehold::device {

inline constexpr std::uint32_t kHeadsPerBlock = 4;

/// Normalises the first `width` elements of a head in a warp's shared memory. Null: every weight is
/// 1.
__device__ __forceinline__ void norm_head(const RopeKvAppendParams& p, const float* weight,
                                          std::uint32_t width, float* head) {
  const float mean = warp_dot(head, head, width) / static_cast<float>(width);
  const float factor = 1.0F / sqrtf(mean + p.epsilon);
  __syncwarp();
  for (std::uint32_t d = lane_of_warp(); d < width; d += kWarp)
    head[d] = weight != nullptr ? (head[d] * factor) * weight[d] : head[d] * factor;
  __syncwarp();
}

/// Processes a query or key in a warp's shared memory: applies the norm if there is a weight, and
/// the rotation if there are angles.
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
  if (p.kv.type == KvType::Q8_0) {
    auto* codes = reinterpret_cast<std::int8_t*>(at);
    auto* scales = reinterpret_cast<Half*>(codes + KvLayout::kBlockTokens * p.head_dim);
    return store_codes(head, p.head_dim, codes + slot, scales + slot / kKvScaleBlock);
  }
  for (std::uint32_t d = lane_of_warp(); d < p.head_dim; d += kWarp) {
    if (p.kv.type == KvType::F32)
      reinterpret_cast<float*>(at)[slot + d] = head[d];
    else
      reinterpret_cast<Half*>(at)[slot + d] = f16_from_f32(head[d]);
  }
}

/// One warp per head: first queries, then keys, then values if there are any. Grid: heads / 4,
/// rows.
LEASEHOLD_KERNEL(lh_rope_kv_append, RopeKvAppendParams, 128) {
  __shared__ float heads[kHeadsPerBlock][kMaxHeadDim];
  if (warp_engine_is_stopped(p.gate)) return;
  const std::uint32_t row = blockIdx.y;
  const std::uint32_t unit = blockIdx.x * kHeadsPerBlock + warp_of_block();
  if (row >= row_count(p.gate) || unit >= head_count(p)) return;
  if (!warp_row_is_live(p.gate, row)) return;
  float* head = heads[warp_of_block()];
  const bool is_query = unit < p.n_heads;
  const std::uint32_t of_kv = unit - p.n_heads;
  const std::uint32_t plane = !is_query && of_kv >= p.n_kv_heads ? 1 : 0;
  const std::uint32_t kv_head = of_kv - plane * p.n_kv_heads;
  const float* rows = is_query ? p.q : plane == 0 ? p.k : p.v;
  const std::size_t at =
      (is_query ? std::size_t{row} * p.n_heads + unit : std::size_t{row} * p.n_kv_heads + kv_head) *
      p.head_dim;
  for (std::uint32_t d = lane_of_warp(); d < p.head_dim; d += kWarp) head[d] = rows[at + d];
  __syncwarp();
  if (plane == 0)
    prepare_head(p, is_query ? p.q_norm : p.k_norm, is_query ? p.head_dim : p.value_dim, row, head);
  if (plane == 1 && p.norms_values != 0) norm_head(p, nullptr, p.head_dim, head);
  if (!is_query) return append_head(p, row, plane, kv_head, head);
  const float scale = p.query_scales != nullptr ? p.query_scales[row] : 1.0F;
  for (std::uint32_t d = lane_of_warp(); d < p.head_dim; d += kWarp) p.q[at + d] = head[d] * scale;
}

}  // namespace leasehold::device
