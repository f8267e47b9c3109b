#include "kernels/cpu/avx512/attention.hpp"

#include <cmath>
#include <limits>

#include "kernels/cpu/attend.hpp"
#include "kernels/cpu/avx2/rows.hpp"
#include "kernels/cpu/avx512/fold.hpp"
#include "kernels/cpu/avx512/lanes.hpp"

namespace leasehold::avx512 {
namespace {

/// Adds the last n < 32 products to their lanes. A lane without an element keeps its bits.
template <int kQueries>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void add_tail(
    const float* key, const float* const (&q)[kQueries], std::uint32_t first, std::uint32_t n,
    __m512 (&sums)[2][kQueries]) {
#pragma GCC unroll 2
  for (std::uint32_t g = 0; g < 2; ++g) {
    const std::uint32_t at = g * kWidth;
    const __mmask16 mask = first_lanes(std::ptrdiff_t{n} - at);
    const __m512 part = _mm512_maskz_loadu_ps(mask, key + at);
#pragma GCC unroll 2
    for (int query = 0; query < kQueries; ++query)
      sums[g][query] = _mm512_mask3_fmadd_ps(
          part, _mm512_maskz_loadu_ps(mask, q[query] + first + at), sums[g][query], mask);
  }
}

/// The products of a key and some queries, reduced to 16 lanes: the first step of the fold.
template <int kQueries>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void sixteen_lanes(
    const float* key, const float* const (&q)[kQueries], std::uint32_t n,
    __m512 (&sixteen)[kQueries]) {
  __m512 sums[2][kQueries];
#pragma GCC unroll 2
  for (int query = 0; query < kQueries; ++query)
    sums[0][query] = sums[1][query] = _mm512_setzero_ps();
  std::uint32_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
#pragma GCC unroll 2
    for (std::uint32_t g = 0; g < 2; ++g) {
      const __m512 part = _mm512_loadu_ps(key + i + g * kWidth);
#pragma GCC unroll 2
      for (int query = 0; query < kQueries; ++query)
        sums[g][query] =
            _mm512_fmadd_ps(part, _mm512_loadu_ps(q[query] + i + g * kWidth), sums[g][query]);
    }
  }
  if (n % kSumLanes != 0) add_tail(key + i, q, i, n - i, sums);
#pragma GCC unroll 2
  for (int query = 0; query < kQueries; ++query)
    sixteen[query] = _mm512_add_ps(sums[0][query], sums[1][query]);
}

/// Four lanes of each of the keys u, u + 4, u + 8 and u + 12, one key per quarter.
template <int kQueries>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void four_lanes(
    const float* keys, const float* const (&q)[kQueries], std::uint32_t n, std::uint32_t u,
    __m512 (&four)[kQueries]) {
  __m512 sixteen[4][kQueries];
#pragma GCC unroll 4
  for (std::uint32_t k = 0; k < 4; ++k)
    sixteen_lanes(keys + std::size_t{u + 4 * k} * n, q, n, sixteen[k]);
#pragma GCC unroll 2
  for (int query = 0; query < kQueries; ++query)
    four[query] =
        fold_quarters<0x88, 0xDD>(fold_quarters<0x44, 0xEE>(sixteen[0][query], sixteen[1][query]),
                                  fold_quarters<0x44, 0xEE>(sixteen[2][query], sixteen[3][query]));
}

/// Sixteen dots of each query, folded together: a transposition that adds at each of its steps.
template <int kQueries>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void sixteen_dots(
    const float* keys, const float* const (&q)[kQueries], std::uint32_t n,
    __m512 (&dots)[kQueries]) {
  __m512 four[4][kQueries];
#pragma GCC unroll 4
  for (std::uint32_t u = 0; u < 4; ++u) four_lanes(keys, q, n, u, four[u]);
#pragma GCC unroll 2
  for (int query = 0; query < kQueries; ++query)
    dots[query] =
        fold_elements<0x88, 0xDD>(fold_elements<0x44, 0xEE>(four[0][query], four[1][query]),
                                  fold_elements<0x44, 0xEE>(four[2][query], four[3][query]));
}

/// Scores a block for kQueries queries from `first` on. Each key is loaded once.
template <int kQueries>
[[gnu::target("avx512f,avx512dq,avx2,fma")]] void score_queries(const AttentionTile& tile,
                                                                const float* keys,
                                                                std::uint32_t first,
                                                                std::uint32_t at) {
  const float* q[kQueries];
#pragma GCC unroll 2
  for (int query = 0; query < kQueries; ++query) q[query] = tile.q[first + query];
  __m512 dots[kQueries];
  if (tile.head_dim == 64)
    sixteen_dots(keys, q, 64, dots);  // unrolled, q in registers
  else if (tile.head_dim == 128)
    sixteen_dots(keys, q, 128, dots);
  else
    sixteen_dots(keys, q, tile.head_dim, dots);
#pragma GCC unroll 2
  for (int query = 0; query < kQueries; ++query)
    _mm512_storeu_ps(weights_of(tile, first + query) + at,
                     _mm512_mul_ps(dots[query], _mm512_set1_ps(tile.scale)));
}

/// The largest lane. Precondition: no lane is a NaN.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline float largest_of(
    __m512 sixteen) {
  const __m256 eight = _mm256_max_ps(_mm512_maskz_extractf32x8_ps(0xFF, sixteen, 0),
                                     _mm512_maskz_extractf32x8_ps(0xFF, sixteen, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/// Adds weighted values to kParts·16 elements of a run's accumulators, from element d on. The sums
/// stay in registers.
template <int kQueries, int kParts, class Kv>
[[gnu::target("avx512f,avx512dq,avx2,fma")]] void weigh_part(const AttentionTile& tile,
                                                             const WeighRun& run, std::uint32_t d) {
  __m512 sums[kQueries][kParts];
  const float* weights[kQueries];
#pragma GCC unroll 4
  for (int query = 0; query < kQueries; ++query) {
    weights[query] = weights_of(tile, run.first_query + query);
#pragma GCC unroll 4
    for (int g = 0; g < kParts; ++g)
      sums[query][g] =
          _mm512_loadu_ps(tile.partial[run.first_query + query] + kPartialAcc + d + g * kWidth);
  }
  for (std::uint32_t i = run.begin; i < run.end; ++i) {
    const Kv* value = value_at<Kv>(tile, i) + d;
    __m512 parts[kParts];
#pragma GCC unroll 4
    for (int g = 0; g < kParts; ++g) parts[g] = load16(value + g * kWidth);
#pragma GCC unroll 4
    for (int query = 0; query < kQueries; ++query) {
      const __m512 weight = _mm512_set1_ps(weights[query][i]);
#pragma GCC unroll 4
      for (int g = 0; g < kParts; ++g)
        sums[query][g] = _mm512_fmadd_ps(weight, parts[g], sums[query][g]);
    }
  }
#pragma GCC unroll 4
  for (int query = 0; query < kQueries; ++query)
#pragma GCC unroll 4
    for (int g = 0; g < kParts; ++g)
      _mm512_storeu_ps(tile.partial[run.first_query + query] + kPartialAcc + d + g * kWidth,
                       sums[query][g]);
}

/// Adds weighted values to element d of a run's accumulators, for the last elements of a head.
template <class Kv>
[[gnu::target("avx512f,avx512dq,avx2,fma")]] void weigh_element(const AttentionTile& tile,
                                                                const WeighRun& run,
                                                                std::uint32_t d) {
  for (std::uint32_t query = run.first_query; query < run.first_query + run.n_queries; ++query) {
    float sum = tile.partial[query][kPartialAcc + d];
    for (std::uint32_t i = run.begin; i < run.end; ++i)
      sum = std::fma(weights_of(tile, query)[i], as_float(value_at<Kv>(tile, i)[d]), sum);
    tile.partial[query][kPartialAcc + d] = sum;
  }
}

template <int kQueries, class Kv>
[[gnu::target("avx512f,avx512dq,avx2,fma")]] void weigh_queries(const AttentionTile& tile,
                                                                const WeighRun& run) {
  std::uint32_t d = 0;
  for (; d + 4 * kWidth <= tile.value_dim; d += 4 * kWidth)
    weigh_part<kQueries, 4, Kv>(tile, run, d);
  for (; d + kWidth <= tile.value_dim; d += kWidth) weigh_part<kQueries, 1, Kv>(tile, run, d);
  for (; d < tile.value_dim; ++d) weigh_element<Kv>(tile, run, d);
}

/// weights[p] = exp(max of partial p - max) for up to 16 partials.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void partial_weights(
    const float* partials, std::uint32_t count, std::uint32_t stride, float max,
    float (&weights)[kWidth]) {
  std::fill_n(weights, kWidth, 0.0F);
  for (std::uint32_t p = 0; p < count; ++p)
    weights[p] = partials[std::size_t{p} * stride + kPartialMax] - max;
  _mm512_storeu_ps(weights, exp16(_mm512_loadu_ps(weights)));
}

/// Adds weighted accumulators to kParts·16 elements of `out`.
template <int kParts>
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline void add_weighted(
    const float* accumulators, std::uint32_t count, std::uint32_t stride, const float* weights,
    float* out) {
  __m512 sums[kParts];
#pragma GCC unroll 4
  for (int g = 0; g < kParts; ++g) sums[g] = _mm512_loadu_ps(out + g * kWidth);
  for (std::uint32_t p = 0; p < count; ++p) {
    const __m512 weight = _mm512_set1_ps(weights[p]);
#pragma GCC unroll 4
    for (int g = 0; g < kParts; ++g)
      sums[g] = _mm512_fmadd_ps(
          _mm512_loadu_ps(accumulators + std::size_t{p} * stride + g * kWidth), weight, sums[g]);
  }
#pragma GCC unroll 4
  for (int g = 0; g < kParts; ++g) _mm512_storeu_ps(out + g * kWidth, sums[g]);
}

[[gnu::target("avx512f,avx512dq,avx2,fma")]] void add_partials(const float* partials,
                                                               std::uint32_t count,
                                                               std::uint32_t head_dim,
                                                               const float* weights, float* out) {
  const std::uint32_t stride = partial_floats(head_dim);
  const float* from = partials + kPartialAcc;
  std::uint32_t d = 0;
  for (; d + 4 * kWidth <= head_dim; d += 4 * kWidth)
    add_weighted<4>(from + d, count, stride, weights, out + d);
  for (; d + kWidth <= head_dim; d += kWidth)
    add_weighted<1>(from + d, count, stride, weights, out + d);
  for (std::uint32_t p = 0; p < count; ++p)
    for (std::uint32_t e = d; e < head_dim; ++e)
      out[e] = std::fma(from[std::size_t{p} * stride + e], weights[p], out[e]);
}

struct Ops {
  static constexpr std::uint32_t kRunQueries = 4;
  static constexpr bool kWidensKeys = true;

  [[gnu::target("avx512f,avx512dq,avx2,fma")]] static const float* widen(const Half* from,
                                                                         std::uint32_t n,
                                                                         float* to) {
    for (std::uint32_t i = 0; i < n; i += kWidth)  // a block is a multiple of 16 elements
      _mm512_storeu_ps(to + i, load16(from + i));
    return to;
  }
  [[gnu::target("avx512f,avx512dq,avx2,fma")]] static void widen_codes(const std::int8_t* q,
                                                                       const float* scales,
                                                                       std::uint32_t n, float* to) {
    for (std::uint32_t i = 0; i < n; i += kKvScaleBlock) {
      const __m512 scale = _mm512_set1_ps(scales[i / kKvScaleBlock]);
      _mm512_storeu_ps(to + i, _mm512_mul_ps(load16(q + i), scale));
      _mm512_storeu_ps(to + i + kWidth, _mm512_mul_ps(load16(q + i + kWidth), scale));
    }
  }

  static std::uint32_t score_block(const AttentionTile& tile, const float* keys,
                                   std::uint32_t query, std::uint32_t at) {
    const bool is_last = query + 1 == tile.n_queries;
    if (is_last)
      score_queries<1>(tile, keys, query, at);
    else
      score_queries<2>(tile, keys, query, at);
    return is_last ? 1 : 2;
  }

  static void softcap(float* scores, std::uint32_t n, float cap) { avx2::softcap(scores, n, cap); }
  /// Scores are padded to whole lanes with -inf, whose exponential is exactly 0. Padding adds +0 to
  /// sums that are never -0. The sign of a zero maximum may differ: exp(±0) is 1.
  [[gnu::target("avx512f,avx512dq,avx2,fma")]] static void softmax(float* scores, std::uint32_t n,
                                                                   float* partial) {
    constexpr float kNoScore = -std::numeric_limits<float>::infinity();
    const std::uint32_t padded = (n + kSumLanes - 1) / kSumLanes * kSumLanes;
    std::fill(scores + n, scores + padded, kNoScore);
    __m512 highest[2] = {_mm512_set1_ps(kNoScore), _mm512_set1_ps(kNoScore)};
    for (std::uint32_t i = 0; i < padded; i += kSumLanes)
#pragma GCC unroll 2
      for (std::uint32_t g = 0; g < 2; ++g)  // skips NaN
        highest[g] =
            _mm512_maskz_max_ps(0xFFFF, _mm512_loadu_ps(scores + i + g * kWidth), highest[g]);
    partial[kPartialMax] = largest_of(_mm512_maskz_max_ps(0xFFFF, highest[0], highest[1]));
    const __m512 max = _mm512_set1_ps(partial[kPartialMax]);
    Lanes sums{{_mm512_setzero_ps(), _mm512_setzero_ps()}};
    for (std::uint32_t i = 0; i < padded; i += kSumLanes) {
#pragma GCC unroll 2
      for (std::uint32_t g = 0; g < 2; ++g) {
        float* sixteen = scores + i + g * kWidth;
        const __m512 e = exp16(_mm512_sub_ps(_mm512_loadu_ps(sixteen), max));
        _mm512_storeu_ps(sixteen, e);
        sums.part[g] = _mm512_add_ps(sums.part[g], e);
      }
    }
    partial[kPartialSum] = fold(sums);
  }

  template <class Kv>
  static void weigh(const AttentionTile& tile, const WeighRun& run) {
    if (run.n_queries == 4) return weigh_queries<4, Kv>(tile, run);
    if (run.n_queries == 3) return weigh_queries<3, Kv>(tile, run);
    if (run.n_queries == 2) return weigh_queries<2, Kv>(tile, run);
    weigh_queries<1, Kv>(tile, run);
  }
};

}  // namespace

void attend(const AttentionTile& tile) {
  attend_with<Ops>(tile);
}

void merge(const float* partials, std::uint32_t count, std::uint32_t head_dim, float sink,
           float* out) {
  const std::uint32_t stride = partial_floats(head_dim);
  float max = sink;
  for (std::uint32_t p = 0; p < count; ++p) {
    const float partition_max = partials[std::size_t{p} * stride + kPartialMax];
    max = partition_max > max ? partition_max : max;
  }
  float sum = exp_f32(sink - max);
  std::fill_n(out, head_dim, 0.0F);
  for (std::uint32_t first = 0; first < count; first += kWidth) {
    const float* from = partials + std::size_t{first} * stride;
    const std::uint32_t now = std::min(kWidth, count - first);
    float weights[kWidth];
    partial_weights(from, now, stride, max, weights);
    for (std::uint32_t p = 0; p < now; ++p)
      sum = std::fma(from[std::size_t{p} * stride + kPartialSum], weights[p], sum);
    add_partials(from, now, head_dim, weights, out);
  }
  std::uint32_t d = 0;
  for (; d + kWidth <= head_dim; d += kWidth)
    _mm512_storeu_ps(out + d, _mm512_div_ps(_mm512_loadu_ps(out + d), _mm512_set1_ps(sum)));
  for (; d < head_dim; ++d) out[d] /= sum;
}

}  // namespace leasehold::avx512
