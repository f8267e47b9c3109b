#include "kernels/cpu/avx2/attention.hpp"

#include <algorithm>
#include <limits>

#include "kernels/cpu/attend.hpp"
#include "kernels/cpu/avx2/lanes.hpp"
#include "kernels/cpu/avx2/rows.hpp"

namespace leasehold::avx2 {
namespace {

constexpr float kNoScore = -std::numeric_limits<float>::infinity();

/// The products of a key and a query, reduced to 8 lanes: the first steps of the fold.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 eight_lanes(const float* key,
                                                                               const float* q,
                                                                               std::uint32_t n) {
  Lanes sums = zero_lanes();
  std::uint32_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes)
#pragma GCC unroll 4
    for (std::uint32_t g = 0; g < 4; ++g)
      sums.part[g] =
          _mm256_fmadd_ps(load8(key + i + g * kWidth), load8(q + i + g * kWidth), sums.part[g]);
  if (i != n) add_tail(sums, key + i, q + i, n - i);
  return _mm256_add_ps(_mm256_add_ps(sums.part[0], sums.part[2]),
                       _mm256_add_ps(sums.part[1], sums.part[3]));
}

/// One step of the fold for two registers at once: each adds its selected elements.
template <int kLow, int kHigh>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 fold_elements(__m256 a,
                                                                                 __m256 b) {
  return _mm256_add_ps(_mm256_shuffle_ps(a, b, kLow), _mm256_shuffle_ps(a, b, kHigh));
}

/// Four lanes of key `u` in the lower half, and four of key `u` + 4 in the upper half.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 four_lanes(const float* keys,
                                                                              const float* q,
                                                                              std::uint32_t n,
                                                                              std::uint32_t u) {
  const __m256 low = eight_lanes(keys + std::size_t{u} * n, q, n);
  const __m256 high = eight_lanes(keys + std::size_t{u + 4} * n, q, n);
  return _mm256_add_ps(_mm256_permute2f128_ps(low, high, 0x20),
                       _mm256_permute2f128_ps(low, high, 0x31));
}

/// Eight dots, folded together: a transposition that adds at each of its steps.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 eight_dots(const float* keys,
                                                                              const float* q,
                                                                              std::uint32_t n) {
  const __m256 low =
      fold_elements<0x44, 0xEE>(four_lanes(keys, q, n, 0), four_lanes(keys, q, n, 1));
  const __m256 high =
      fold_elements<0x44, 0xEE>(four_lanes(keys, q, n, 2), four_lanes(keys, q, n, 3));
  return fold_elements<0x88, 0xDD>(low, high);
}

/// The highest of whole lanes of scores, without NaN. Unlike in max_score the sign of a zero may
/// differ, which has no effect: exp(±0) is 1.
[[gnu::target("avx2,fma,f16c")]] float highest_of(const float* scores, std::uint32_t n) {
  __m256 max = _mm256_set1_ps(kNoScore);
  for (std::uint32_t i = 0; i < n; i += kWidth) max = _mm256_max_ps(load8(scores + i), max);
  float lanes[kWidth];
  _mm256_storeu_ps(lanes, max);
  return max_score(lanes, kWidth);
}

/// Replaces each score by exp(score - max) and returns their sum.
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

/// Adds weighted values to kParts·8 elements of a run's accumulators, from element d on. The sums
/// stay in registers.
template <int kQueries, int kParts, class Kv>
[[gnu::target("avx2,fma,f16c")]] void weigh_part(const AttentionTile& tile, const WeighRun& run,
                                                 std::uint32_t d) {
  __m256 sums[kQueries][kParts];
  const float* weights[kQueries];
#pragma GCC unroll 4
  for (int query = 0; query < kQueries; ++query) {
    weights[query] = weights_of(tile, run.first_query + query);
#pragma GCC unroll 4
    for (int g = 0; g < kParts; ++g)
      sums[query][g] = load8(tile.partial[run.first_query + query] + kPartialAcc + d + g * kWidth);
  }
  for (std::uint32_t i = run.begin; i < run.end; ++i) {
    const Kv* value = value_at<Kv>(tile, i) + d;
    __m256 weight[kQueries];
#pragma GCC unroll 4
    for (int query = 0; query < kQueries; ++query)
      weight[query] = _mm256_set1_ps(weights[query][i]);
#pragma GCC unroll 4
    for (int g = 0; g < kParts; ++g) {
      const __m256 part = load8(value + g * kWidth);
#pragma GCC unroll 4
      for (int query = 0; query < kQueries; ++query)
        sums[query][g] = _mm256_fmadd_ps(weight[query], part, sums[query][g]);
    }
  }
#pragma GCC unroll 4
  for (int query = 0; query < kQueries; ++query)
#pragma GCC unroll 4
    for (int g = 0; g < kParts; ++g)
      _mm256_storeu_ps(tile.partial[run.first_query + query] + kPartialAcc + d + g * kWidth,
                       sums[query][g]);
}

/// Adds weighted values to element d of a run's accumulators, for the last elements of a head.
template <class Kv>
[[gnu::target("avx2,fma,f16c")]] void weigh_element(const AttentionTile& tile, const WeighRun& run,
                                                    std::uint32_t d) {
  for (std::uint32_t query = run.first_query; query < run.first_query + run.n_queries; ++query) {
    float sum = tile.partial[query][kPartialAcc + d];
    for (std::uint32_t i = run.begin; i < run.end; ++i)
      sum = std::fma(weights_of(tile, query)[i], as_float(value_at<Kv>(tile, i)[d]), sum);
    tile.partial[query][kPartialAcc + d] = sum;
  }
}

template <int kQueries, class Kv>
[[gnu::target("avx2,fma,f16c")]] void weigh_queries(const AttentionTile& tile,
                                                    const WeighRun& run) {
  std::uint32_t d = 0;
  for (; d + 4 * kWidth <= tile.value_dim; d += 4 * kWidth)
    weigh_part<kQueries, 4, Kv>(tile, run, d);
  for (; d + kWidth <= tile.value_dim; d += kWidth) weigh_part<kQueries, 1, Kv>(tile, run, d);
  for (; d < tile.value_dim; ++d) weigh_element<Kv>(tile, run, d);
}

struct Ops {
  static constexpr std::uint32_t kRunQueries = 3;  // 12 sums, 3 weights and a value

  static const float* widen(const float* from, std::uint32_t, float*) { return from; }
  [[gnu::target("avx2,fma,f16c")]] static const float* widen(const Half* from, std::uint32_t n,
                                                             float* to) {
    for (std::uint32_t i = 0; i < n; i += kWidth)  // a block is a multiple of 16 elements
      _mm256_storeu_ps(to + i, load8(from + i));
    return to;
  }
  [[gnu::target("avx2,fma,f16c")]] static void widen_codes(const std::int8_t* q,
                                                           const float* scales, std::uint32_t n,
                                                           float* to) {
    for (std::uint32_t i = 0; i < n; i += kKvScaleBlock) {
      const __m256 scale = _mm256_set1_ps(scales[i / kKvScaleBlock]);
#pragma GCC unroll 4
      for (std::uint32_t at = i; at < i + kKvScaleBlock; at += kWidth)
        _mm256_storeu_ps(to + at, _mm256_mul_ps(load8(q + at), scale));
    }
  }

  [[gnu::target("avx2,fma,f16c")]] static std::uint32_t score_block(const AttentionTile& tile,
                                                                    const float* keys,
                                                                    std::uint32_t query,
                                                                    std::uint32_t at) {
    const float* q = tile.q[query];
    for (std::uint32_t i = 0; i < KvLayout::kBlockTokens; i += kWidth) {
      const float* eight = keys + std::size_t{i} * tile.head_dim;
      const __m256 dots = tile.head_dim == 64    ? eight_dots(eight, q, 64)  // unrolled
                          : tile.head_dim == 128 ? eight_dots(eight, q, 128)
                                                 : eight_dots(eight, q, tile.head_dim);
      _mm256_storeu_ps(weights_of(tile, query) + at + i,
                       _mm256_mul_ps(dots, _mm256_set1_ps(tile.scale)));
    }
    return 1;
  }

  static void softcap(float* scores, std::uint32_t n, float cap) { avx2::softcap(scores, n, cap); }
  /// Scores are padded to whole lanes with -inf, whose exponential is exactly 0. Padding adds +0 to
  /// sums that are never -0.
  [[gnu::target("avx2,fma,f16c")]] static void softmax(float* scores, std::uint32_t n,
                                                       float* partial) {
    const std::uint32_t padded = (n + kSumLanes - 1) / kSumLanes * kSumLanes;
    std::fill(scores + n, scores + padded, kNoScore);
    partial[kPartialMax] = highest_of(scores, padded);
    partial[kPartialSum] = exponentiate(scores, padded, partial[kPartialMax]);
  }

  template <class Kv>
  static void weigh(const AttentionTile& tile, const WeighRun& run) {
    if (run.n_queries == 3) return weigh_queries<3, Kv>(tile, run);
    if (run.n_queries == 2) return weigh_queries<2, Kv>(tile, run);
    weigh_queries<1, Kv>(tile, run);
  }
};

/// out[d] = acc[d]·weight + out[d]
[[gnu::target("avx2,fma,f16c")]] void add_weighted(const float* acc, float weight, std::uint32_t n,
                                                   float* out) {
  const __m256 weights = _mm256_set1_ps(weight);
  std::uint32_t d = 0;
  for (; d + kWidth <= n; d += kWidth)
    _mm256_storeu_ps(out + d, _mm256_fmadd_ps(load8(acc + d), weights, load8(out + d)));
  for (; d < n; ++d) out[d] = std::fma(acc[d], weight, out[d]);
}

/// weights[p] = exp(max of partial p - max) for `count` (1 … 8) partials.
[[gnu::target("avx2,fma,f16c")]] void partial_weights(const float* partials, std::uint32_t count,
                                                      std::uint32_t stride, float max,
                                                      float (&weights)[kWidth]) {
  std::fill_n(weights, kWidth, 0.0F);
  for (std::uint32_t p = 0; p < count; ++p) weights[p] = partials[p * stride + kPartialMax] - max;
  _mm256_storeu_ps(weights, exp8(load8(weights)));
}

}  // namespace

void attend(const AttentionTile& tile) {
  attend_with<Ops>(tile);
}

void merge(const float* partials, std::uint32_t count, std::uint32_t head_dim, float sink,
           float* out) {
  const std::uint32_t stride = partial_floats(head_dim);
  float max = sink;
  for (std::uint32_t p = 0; p < count; ++p) {
    const float partition_max = partials[p * stride + kPartialMax];
    max = partition_max > max ? partition_max : max;
  }
  float sum = exp_f32(sink - max);
  float weights[kWidth];
  std::fill_n(out, head_dim, 0.0F);
  for (std::uint32_t p = 0; p < count; ++p) {
    const float* partial = partials + p * stride;
    if (p % kWidth == 0)
      partial_weights(partial, std::min(kWidth, count - p), stride, max, weights);
    sum = std::fma(partial[kPartialSum], weights[p % kWidth], sum);
    add_weighted(partial + kPartialAcc, weights[p % kWidth], head_dim, out);
  }
  const __m256 sums = _mm256_set1_ps(sum);
  std::uint32_t d = 0;
  for (; d + kWidth <= head_dim; d += kWidth)
    _mm256_storeu_ps(out + d, _mm256_div_ps(load8(out + d), sums));
  for (; d < head_dim; ++d) out[d] /= sum;
}

}  // namespace leasehold::avx2
