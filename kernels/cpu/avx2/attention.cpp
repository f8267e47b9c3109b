#include "kernels/cpu/avx2/attention.hpp"

#include <algorithm>
#include <limits>

#include "kernels/cpu/avx2/lanes.hpp"

namespace leasehold::avx2 {
namespace {

constexpr std::uint32_t kBlockTokens = KvLayout::kBlockTokens;

/// Entry i of a partition: [head_dim] keys or values.
template <class Kv>
const Kv* entry(const std::byte* const (&blocks)[kPartitionBlocks], std::uint32_t i,
                std::uint32_t head_dim) {
  return reinterpret_cast<const Kv*>(blocks[i / kBlockTokens]) +
         std::size_t{i % kBlockTokens} * head_dim;
}

/// Fills scores[0 … n) and pads to whole lanes with -inf, whose exponential is exactly 0.
template <class Kv>
[[gnu::target("avx2,fma,f16c")]] void score(const Partition& partition, float* scores) {
  for (std::uint32_t i = 0; i < partition.n_positions; ++i)
    scores[i] =
        dot(entry<Kv>(partition.keys, i, partition.head_dim), partition.q, partition.head_dim) *
        partition.scale;
  std::fill(scores + partition.n_positions, scores + kPartitionPositions,
            -std::numeric_limits<float>::infinity());
}

/// `max_score` over whole lanes. The sign of a zero may differ: exp(±0) is 1.
[[gnu::target("avx2,fma,f16c")]] float padded_max(const float* scores, std::uint32_t n) {
  __m256 max = load8(scores);
  max = _mm256_max_ps(max, _mm256_set1_ps(-std::numeric_limits<float>::infinity()));  // no NaN
  for (std::uint32_t i = kWidth; i < n; i += kWidth) max = _mm256_max_ps(load8(scores + i), max);
  float lanes[kWidth];
  _mm256_storeu_ps(lanes, max);
  return max_score(lanes, kWidth);
}

/// Replaces each score by exp(score - max) and returns their sum. Padding adds +0 to sums that are
/// never -0.
[[gnu::target("avx2,fma,f16c")]] float exponentiate(float* scores, std::uint32_t n, float max) {
  const __m256 highest_score = _mm256_set1_ps(max);
  Lanes sums = zero_lanes();
  for (std::uint32_t i = 0; i < n; i += kSumLanes) {
#pragma GCC unroll 4
    for (std::uint32_t g = 0; g < 4; ++g) {
      float* eight = scores + i + g * kWidth;
      const __m256 e = exp8(_mm256_sub_ps(load8(eight), highest_score));
      _mm256_storeu_ps(eight, e);
      sums.part[g] = _mm256_add_ps(sums.part[g], e);
    }
  }
  return fold(sums);
}

/// acc[d …) for kParts·8 elements: one pass over the positions, sums in registers.
template <int kParts, class Kv>
[[gnu::target("avx2,fma,f16c")]] void weigh_values(const Partition& partition, const float* weights,
                                                   std::uint32_t d, float* acc) {
  __m256 sums[kParts];
#pragma GCC unroll 4
  for (int g = 0; g < kParts; ++g) sums[g] = _mm256_setzero_ps();
  for (std::uint32_t i = 0; i < partition.n_positions; ++i) {
    const Kv* value = entry<Kv>(partition.values, i, partition.head_dim) + d;
    const __m256 weight = _mm256_set1_ps(weights[i]);
#pragma GCC unroll 4
    for (int g = 0; g < kParts; ++g)
      sums[g] = _mm256_fmadd_ps(weight, load8(value + g * 8), sums[g]);
  }
#pragma GCC unroll 4
  for (int g = 0; g < kParts; ++g) _mm256_storeu_ps(acc + d + g * 8, sums[g]);
}

template <class Kv>
[[gnu::target("avx2,fma,f16c")]] void accumulate(const Partition& partition, const float* weights,
                                                 float* acc) {
  std::uint32_t d = 0;
  for (; d + 4 * kWidth <= partition.head_dim; d += 4 * kWidth)
    weigh_values<4, Kv>(partition, weights, d, acc);
  for (; d + kWidth <= partition.head_dim; d += kWidth)
    weigh_values<1, Kv>(partition, weights, d, acc);
  for (; d < partition.head_dim; ++d) {
    float sum = 0.0F;
    for (std::uint32_t i = 0; i < partition.n_positions; ++i)
      sum =
          std::fma(weights[i], load1(entry<Kv>(partition.values, i, partition.head_dim) + d), sum);
    acc[d] = sum;
  }
}

template <class Kv>
[[gnu::target("avx2,fma,f16c")]] void attend_as(const Partition& partition, float* partial) {
  float scores[kPartitionPositions];
  score<Kv>(partition, scores);
  const float max = padded_max(scores, partition.n_positions);
  partial[kPartialMax] = max;
  partial[kPartialSum] = exponentiate(scores, partition.n_positions, max);
  accumulate<Kv>(partition, scores, partial + kPartialAcc);
}

/// out[d] = acc[d]·weight + out[d]
[[gnu::target("avx2,fma,f16c")]] void add_weighted(const float* acc, float weight, std::uint32_t n,
                                                   float* out) {
  const __m256 weights = _mm256_set1_ps(weight);
  std::uint32_t d = 0;
  for (; d + kWidth <= n; d += kWidth)
    _mm256_storeu_ps(out + d, _mm256_fmadd_ps(load8(acc + d), weights, load8(out + d)));
  for (; d < n; ++d) out[d] = std::fma(acc[d], weight, out[d]);
}

}  // namespace

void attend(const Partition& partition, float* partial) {
  if (partition.type == KvType::F32) return attend_as<float>(partition, partial);
  attend_as<Half>(partition, partial);
}

void merge(const float* partials, std::uint32_t count, std::uint32_t head_dim, float* out) {
  const std::uint32_t stride = partial_floats(head_dim);
  float max = -std::numeric_limits<float>::infinity();
  for (std::uint32_t p = 0; p < count; ++p) {
    const float of_partition = partials[p * stride + kPartialMax];
    max = of_partition > max ? of_partition : max;
  }
  float sum = 0.0F;
  std::fill_n(out, head_dim, 0.0F);
  for (std::uint32_t p = 0; p < count; ++p) {
    const float* partial = partials + p * stride;
    const float weight = exp_f32(partial[kPartialMax] - max);
    sum = std::fma(partial[kPartialSum], weight, sum);
    add_weighted(partial + kPartialAcc, weight, head_dim, out);
  }
  for (std::uint32_t d = 0; d < head_dim; ++d) out[d] /= sum;
}

}  // namespace leasehold::avx2
