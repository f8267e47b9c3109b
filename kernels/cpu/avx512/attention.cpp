#include "kernels/cpu/avx512/attention.hpp"

#include <cmath>
#include <limits>

#include "kernels/cpu/attend.hpp"
#include "kernels/cpu/avx512/fold.hpp"
#include "kernels/cpu/avx512/lanes.hpp"

namespace leasehold::avx512 {
namespace {

/// The products of a key and a query, added up to 16 lanes: the first step of the fold.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512 sixteen_lanes(
    const float* key, const float* q, std::uint32_t n) {
  Lanes sums{{_mm512_setzero_ps(), _mm512_setzero_ps()}};
  std::uint32_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    sums.part[0] = _mm512_fmadd_ps(_mm512_loadu_ps(key + i), _mm512_loadu_ps(q + i), sums.part[0]);
    sums.part[1] = _mm512_fmadd_ps(_mm512_loadu_ps(key + i + kWidth),
                                   _mm512_loadu_ps(q + i + kWidth), sums.part[1]);
  }
  if (i == n) return _mm512_add_ps(sums.part[0], sums.part[1]);
#pragma GCC unroll 2
  for (std::uint32_t g = 0; g < 2; ++g) {  // a lane without a tail element keeps its bits
    const std::uint32_t at = i + g * kWidth;
    const __mmask16 mask = first_lanes(std::ptrdiff_t{n} - at);
    sums.part[g] = _mm512_mask3_fmadd_ps(_mm512_maskz_loadu_ps(mask, key + at),
                                         _mm512_maskz_loadu_ps(mask, q + at), sums.part[g], mask);
  }
  return _mm512_add_ps(sums.part[0], sums.part[1]);
}

/// Four lanes of each of the keys u, u + 4, u + 8 and u + 12, one key per quarter.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512 four_lanes(
    const float* keys, const float* q, std::uint32_t n, std::uint32_t u) {
  const __m512 low = fold_quarters<0x44, 0xEE>(sixteen_lanes(keys + std::size_t{u} * n, q, n),
                                               sixteen_lanes(keys + std::size_t{u + 4} * n, q, n));
  const __m512 high =
      fold_quarters<0x44, 0xEE>(sixteen_lanes(keys + std::size_t{u + 8} * n, q, n),
                                sixteen_lanes(keys + std::size_t{u + 12} * n, q, n));
  return fold_quarters<0x88, 0xDD>(low, high);
}

/// Sixteen dots, folded together: a transposition that adds at each of its steps.
[[gnu::always_inline, gnu::target("avx512f,avx512dq,avx2,fma")]] inline __m512 sixteen_dots(
    const float* keys, const float* q, std::uint32_t n) {
  const __m512 low =
      fold_elements<0x44, 0xEE>(four_lanes(keys, q, n, 0), four_lanes(keys, q, n, 1));
  const __m512 high =
      fold_elements<0x44, 0xEE>(four_lanes(keys, q, n, 2), four_lanes(keys, q, n, 3));
  return fold_elements<0x88, 0xDD>(low, high);
}

/// The accumulators of a run for kParts·16 elements from d on: sums stay in registers.
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

/// Element d of the accumulators, for the last elements of a head.
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
  for (; d + 4 * kWidth <= tile.head_dim; d += 4 * kWidth)
    weigh_part<kQueries, 4, Kv>(tile, run, d);
  for (; d + kWidth <= tile.head_dim; d += kWidth) weigh_part<kQueries, 1, Kv>(tile, run, d);
  for (; d < tile.head_dim; ++d) weigh_element<Kv>(tile, run, d);
}

struct Ops {
  static constexpr std::uint32_t kRunQueries = 4;

  static const float* widen(const float* from, std::uint32_t, float*) { return from; }
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

  [[gnu::target("avx512f,avx512dq,avx2,fma")]] static void score_block(const float* keys,
                                                                       const float* q,
                                                                       std::uint32_t head_dim,
                                                                       float scale, float* scores) {
    const __m512 dots = head_dim == 64    ? sixteen_dots(keys, q, 64)  // unrolled, q in registers
                        : head_dim == 128 ? sixteen_dots(keys, q, 128)
                                          : sixteen_dots(keys, q, head_dim);
    _mm512_storeu_ps(scores, _mm512_mul_ps(dots, _mm512_set1_ps(scale)));
  }

  /// Scores are padded to whole lanes with -inf, whose exponential is exactly 0. Padding adds +0 to
  /// sums that are never -0. The sign of a zero maximum may differ: exp(±0) is 1.
  [[gnu::target("avx512f,avx512dq,avx2,fma")]] static void softmax(float* scores, std::uint32_t n,
                                                                   float* partial) {
    constexpr float kNoScore = -std::numeric_limits<float>::infinity();
    const std::uint32_t padded = (n + kSumLanes - 1) / kSumLanes * kSumLanes;
    std::fill(scores + n, scores + padded, kNoScore);
    __m512 highest = _mm512_set1_ps(kNoScore);
    for (std::uint32_t i = 0; i < padded; i += kWidth)  // skips NaN
      highest = _mm512_maskz_max_ps(0xFFFF, _mm512_loadu_ps(scores + i), highest);
    float lanes[kWidth];
    _mm512_storeu_ps(lanes, highest);
    partial[kPartialMax] = max_score(lanes, kWidth);
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

}  // namespace leasehold::avx512
