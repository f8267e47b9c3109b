#include "kernels/cpu/avx2/attention.hpp"

#include <algorithm>
#include <limits>

#include "kernels/cpu/attend.hpp"
#include "kernels/cpu/avx2/lanes.hpp"
#include "kernels/cpu/avx2/rows.hpp"

namespace leasehold::avx2 {
namespace {

constexpr float kNoScore = -std::numeric_limits<float>::infinity();
/// Heads whose query stays in registers, so that each query is scored alone.
constexpr std::uint32_t kShortHead = 64;

/// Adds the last n < 8 products to their lanes. A lane without an element keeps its bits, even -0.
template <class Kv>
[[gnu::target("avx2,fma,f16c")]] __m256 add_last(__m256 sums, const Kv* key, const float* q,
                                                 std::uint32_t n) {
  float lanes[kWidth];
  _mm256_storeu_ps(lanes, sums);
  for (std::uint32_t j = 0; j < n; ++j) lanes[j] = std::fma(as_float(key[j]), q[j], lanes[j]);
  return load8(lanes);
}

/// Lanes `first` … first + 7 of the dots of each key with each query.
template <int kKeys, int kQueries, class Kv>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void sum_lanes(
    const Kv* const (&keys)[kKeys], const float* const (&q)[kQueries], std::uint32_t n,
    std::uint32_t first, __m256 (&sums)[kKeys][kQueries]) {
#pragma GCC unroll 8
  for (int dot = 0; dot < kKeys * kQueries; ++dot)
    sums[dot / kQueries][dot % kQueries] = _mm256_setzero_ps();
  std::uint32_t i = first;
  for (; i + kWidth <= n; i += kSumLanes) {
    __m256 eight[kQueries];
#pragma GCC unroll 2
    for (int query = 0; query < kQueries; ++query) eight[query] = load8(q[query] + i);
#pragma GCC unroll 4
    for (int k = 0; k < kKeys; ++k) {
      const __m256 part = load8(keys[k] + i);
#pragma GCC unroll 2
      for (int query = 0; query < kQueries; ++query)
        sums[k][query] = _mm256_fmadd_ps(part, eight[query], sums[k][query]);
    }
  }
  if (i >= n) [[likely]]
    return;
#pragma GCC unroll 8
  for (int dot = 0; dot < kKeys * kQueries; ++dot) {
    __m256& sum = sums[dot / kQueries][dot % kQueries];
    sum = add_last(sum, keys[dot / kQueries] + i, q[dot % kQueries] + i, n - i);
  }
}

/// The dots reduced to 8 lanes: the first steps of the fold.
template <int kKeys, int kQueries, class Kv>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void eight_lanes(
    const Kv* const (&keys)[kKeys], const float* const (&q)[kQueries], std::uint32_t n,
    __m256 (*eight)[kQueries]) {  // [kKeys]
  __m256 sums[4][kKeys][kQueries];
#pragma GCC unroll 4
  for (std::uint32_t g = 0; g < 4; ++g) sum_lanes(keys, q, n, g * kWidth, sums[g]);
#pragma GCC unroll 4
  for (int k = 0; k < kKeys; ++k)
#pragma GCC unroll 2
    for (int query = 0; query < kQueries; ++query)
      eight[k][query] = _mm256_add_ps(_mm256_add_ps(sums[0][k][query], sums[2][k][query]),
                                      _mm256_add_ps(sums[1][k][query], sums[3][k][query]));
}

/// Four lanes of keys 0 and 1 in the lower halves, and of keys 4 and 5 in the upper halves. kKeys
/// are read at a time.
template <int kKeys, int kQueries, class Kv>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void four_lanes(
    const Kv* keys, const float* const (&q)[kQueries], std::uint32_t n,
    __m256 (*four)[kQueries]) {  // [2]
  __m256 eight[4][kQueries];
#pragma GCC unroll 4
  for (std::uint32_t k = 0; k < 4; k += kKeys) {
    const Kv* some[kKeys];
#pragma GCC unroll 4
    for (std::uint32_t i = 0; i < kKeys; ++i)
      some[i] = keys + std::size_t{(k + i) % 2 + (k + i) / 2 * 4} * n;
    eight_lanes(some, q, n, eight + k);
  }
#pragma GCC unroll 2
  for (int k = 0; k < 2; ++k)
#pragma GCC unroll 2
    for (int query = 0; query < kQueries; ++query) {
      const __m256 low = eight[k][query];
      const __m256 high = eight[k + 2][query];
      four[k][query] = _mm256_add_ps(_mm256_permute2f128_ps(low, high, 0x20),
                                     _mm256_permute2f128_ps(low, high, 0x31));
    }
}

/// One step of the fold for two registers at once: each adds its selected elements.
template <int kLow, int kHigh>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 fold_elements(__m256 a,
                                                                                 __m256 b) {
  return _mm256_add_ps(_mm256_shuffle_ps(a, b, kLow), _mm256_shuffle_ps(a, b, kHigh));
}

/// Eight dots of each query, folded together: a transposition that adds at each of its steps.
template <int kKeys, int kQueries, class Kv>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void eight_dots(
    const Kv* keys, const float* const (&q)[kQueries], std::uint32_t n, __m256 (&dots)[kQueries]) {
  __m256 four[4][kQueries];
  four_lanes<kKeys>(keys, q, n, four);
  four_lanes<kKeys>(keys + std::size_t{2} * n, q, n, four + 2);
#pragma GCC unroll 2
  for (int query = 0; query < kQueries; ++query)
    dots[query] =
        fold_elements<0x88, 0xDD>(fold_elements<0x44, 0xEE>(four[0][query], four[1][query]),
                                  fold_elements<0x44, 0xEE>(four[2][query], four[3][query]));
}

/// Scores a block of keys with kQueries queries from `first` on. Each key is loaded, and widened,
/// once for all of them.
template <int kQueries, class Kv>
[[gnu::target("avx2,fma,f16c")]] void score_queries(const AttentionTile& tile, const Kv* keys,
                                                    std::uint32_t first, std::uint32_t at) {
  const float* q[kQueries];
  std::copy_n(tile.q + first, kQueries, q);
  for (std::uint32_t i = 0; i < KvLayout::kBlockTokens; i += kWidth) {
    const Kv* eight = keys + std::size_t{i} * tile.head_dim;
    __m256 dots[kQueries];
    if (kQueries == 1 && tile.head_dim == kShortHead)
      eight_dots<1>(eight, q, kShortHead, dots);
    else
      eight_dots<4>(eight, q, tile.head_dim, dots);
#pragma GCC unroll 2
    for (int query = 0; query < kQueries; ++query)
      _mm256_storeu_ps(weights_of(tile, first + query) + at + i,
                       _mm256_mul_ps(dots[query], _mm256_set1_ps(tile.scale)));
  }
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
  static constexpr bool kWidensKeys = false;

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

  template <class Kv>
  static std::uint32_t score_block(const AttentionTile& tile, const Kv* keys, std::uint32_t query,
                                   std::uint32_t at) {
    const bool is_alone = query + 1 == tile.n_queries || tile.head_dim == kShortHead;
    if (is_alone)
      score_queries<1>(tile, keys, query, at);
    else
      score_queries<2>(tile, keys, query, at);
    return is_alone ? 1 : 2;
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
