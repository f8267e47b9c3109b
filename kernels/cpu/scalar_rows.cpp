#include "kernels/cpu/scalar_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/numerics/exp.hpp"
#include "kernels/numerics/f16.hpp"
#include "kernels/numerics/ordered_sum.hpp"
#include "kernels/numerics/rope.hpp"

namespace leasehold::scalar {
namespace {

float widened(float value) {
  return value;
}
float widened(Half value) {
  return f32_from_f16(value);
}

/// ordered_dot with a row in its stored type.
template <class Kv>
float dot(const Kv* entry, const float* q, std::uint32_t n) {
  float lanes[kSumLanes] = {};
  for (std::uint32_t i = 0; i < n; ++i)
    lanes[i % kSumLanes] = std::fma(widened(entry[i]), q[i], lanes[i % kSumLanes]);
  return fold_lanes(lanes);
}

template <class Kv>
const Kv* entry(const std::byte* const (&blocks)[kPartitionBlocks], std::uint32_t i,
                std::uint32_t head_dim) {
  return reinterpret_cast<const Kv*>(blocks[i / KvLayout::kBlockTokens]) +
         std::size_t{i % KvLayout::kBlockTokens} * head_dim;
}

template <class Kv>
void attend_as(const Partition& p, float* partial) {
  float scores[kPartitionPositions];
  for (std::uint32_t i = 0; i < p.n_positions; ++i)
    scores[i] = dot(entry<Kv>(p.keys, i, p.head_dim), p.q, p.head_dim) * p.scale;
  const float max = max_score(scores, p.n_positions);
  for (std::uint32_t i = 0; i < p.n_positions; ++i) scores[i] = exp_f32(scores[i] - max);
  partial[kPartialMax] = max;
  partial[kPartialSum] = ordered_sum(scores, p.n_positions);
  float* acc = partial + kPartialAcc;
  std::fill_n(acc, p.head_dim, 0.0F);
  for (std::uint32_t i = 0; i < p.n_positions; ++i) {
    const Kv* value = entry<Kv>(p.values, i, p.head_dim);
    for (std::uint32_t d = 0; d < p.head_dim; ++d)
      acc[d] = std::fma(scores[i], widened(value[d]), acc[d]);
  }
}

}  // namespace

void dot_group(const float* w, const float* const* x, std::uint32_t n_rows, std::size_t n,
               float* out) {
  for (std::uint32_t r = 0; r < n_rows; ++r) out[r] = ordered_dot(w, x[r], n);
}

void rms_norm_row(const NormRow& row) {
  const float mean = ordered_dot(row.x, row.x, row.width) / static_cast<float>(row.width);
  const float factor = 1.0F / std::sqrt(mean + row.epsilon);
  for (std::uint32_t i = 0; i < row.width; ++i) row.out[i] = (row.x[i] * factor) * row.weight[i];
}

void swiglu(float* gate, const float* up, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) gate[i] = silu(gate[i]) * up[i];
}

void add_scaled(float weight, const float* x, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = std::fma(weight, x[i], out[i]);
}

void rope_head(float* head, const float* cos_sin, std::uint32_t rope_dim, RopeStyle style) {
  for (std::uint32_t i = 0; i < rope_dim / 2; ++i) rotate_pair(head, style, i, rope_dim, cos_sin);
}

void store_kv(KvType type, const float* values, std::byte* to, std::size_t n) {
  if (type == KvType::F32) {
    std::memcpy(to, values, n * sizeof(float));
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const Half half = f16_from_f32(values[i]);
    std::memcpy(to + i * sizeof half, &half, sizeof half);
  }
}

void attend(const Partition& partition, float* partial) {
  if (partition.type == KvType::F32) return attend_as<float>(partition, partial);
  attend_as<Half>(partition, partial);
}

}  // namespace leasehold::scalar
