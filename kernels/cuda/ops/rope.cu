/// Head norms, rotation and scale of heads, and the append of keys and values.
#include "kernels/cuda/device/head_rows.cuh"

namespace leasehold::device {

inline constexpr std::uint32_t kHeadsPerBlock = 4;

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
  if (!is_query) {
    prepare_stored(p, row, plane, head);
    return append_head(p, row, plane, kv_head, head);
  }
  prepare_query(p, row, head);
  for (std::uint32_t d = lane_of_warp(); d < p.head_dim; d += kWarp) p.q[at + d] = head[d];
}

}  // namespace leasehold::device
