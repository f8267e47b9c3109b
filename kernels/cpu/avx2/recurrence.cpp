#include "kernels/cpu/avx2/recurrence.hpp"

#include "kernels/cpu/avx2/lanes.hpp"

namespace leasehold::avx2 {
namespace {

/// Registers of neighbouring columns: as many sums as a core adds at a time.
constexpr std::uint32_t kColumnParts = 4;

/// Row i of the state before the update, as far as these columns go.
template <std::uint32_t kCount>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void load_state(const float* before,
                                                                            std::size_t at,
                                                                            __m256 (&old)[kCount]) {
#pragma GCC unroll 8
  for (std::uint32_t p = 0; p < kCount; ++p)
    old[p] = before == nullptr ? _mm256_setzero_ps() : _mm256_loadu_ps(before + at + p * kWidth);
}

/// What is added to the state per key element: u of numerics/recurrence.hpp.
template <std::uint32_t kCount>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void updates(const StateHead& head,
                                                                         const StateRow& row,
                                                                         std::uint32_t first,
                                                                         __m256 (&u)[kCount]) {
#pragma GCC unroll 8
  for (std::uint32_t p = 0; p < kCount; ++p) u[p] = _mm256_setzero_ps();
  for (std::uint32_t i = 0; head.is_delta && i < head.key_dim; ++i) {
    __m256 old[kCount];
    load_state(head.before, std::size_t{i} * head.value_dim + first, old);
    const __m256 key = _mm256_set1_ps(row.key[i]);
#pragma GCC unroll 8
    for (std::uint32_t p = 0; p < kCount; ++p) u[p] = _mm256_fmadd_ps(old[p], key, u[p]);
  }
  const __m256 decay = _mm256_set1_ps(row.decay);
  const __m256 weight = _mm256_set1_ps(row.weight);
#pragma GCC unroll 8
  for (std::uint32_t p = 0; p < kCount; ++p) {
    const __m256 value = _mm256_loadu_ps(row.value + first + p * kWidth);
    const __m256 missing = _mm256_sub_ps(value, _mm256_mul_ps(decay, u[p]));
    u[p] = _mm256_mul_ps(weight, head.is_delta ? missing : value);
  }
}

/// advance_column of kCount registers of columns.
template <std::uint32_t kCount>
[[gnu::target("avx2,fma,f16c")]] void advance_columns(const StateHead& head, const StateRow& row,
                                                      std::uint32_t first) {
  __m256 u[kCount];
  __m256 y[kCount];
  updates(head, row, first, u);
#pragma GCC unroll 8
  for (std::uint32_t p = 0; p < kCount; ++p) y[p] = _mm256_setzero_ps();
  const __m256 decay = _mm256_set1_ps(row.decay);
  for (std::uint32_t i = 0; i < head.key_dim; ++i) {
    const std::size_t at = std::size_t{i} * head.value_dim + first;
    __m256 old[kCount];
    load_state(head.before, at, old);
    const __m256 key = _mm256_set1_ps(row.key[i]);
    const __m256 query = _mm256_set1_ps(row.query[i]);
#pragma GCC unroll 8
    for (std::uint32_t p = 0; p < kCount; ++p) {
      const __m256 m = _mm256_fmadd_ps(key, u[p], _mm256_mul_ps(decay, old[p]));
      _mm256_storeu_ps(head.after + at + p * kWidth, m);
      y[p] = _mm256_fmadd_ps(m, query, y[p]);
    }
  }
  const __m256 skip = _mm256_set1_ps(head.skip);
#pragma GCC unroll 8
  for (std::uint32_t p = 0; p < kCount; ++p) {
    const std::uint32_t at = first + p * kWidth;
    if (head.skip != 0.0F) y[p] = _mm256_fmadd_ps(skip, _mm256_loadu_ps(row.value + at), y[p]);
    _mm256_storeu_ps(row.out + at, y[p]);
  }
}

/// Advances these columns over all rows, so that their part of the state stays in the cache.
template <std::uint32_t kCount>
[[gnu::target("avx2,fma,f16c")]] void advance_rows(const StateHead& head, const StateRow* rows,
                                                   std::uint32_t n_rows, std::uint32_t first) {
  for (std::uint32_t r = 0; r < n_rows; ++r)
    advance_columns<kCount>(after_rows(head, r), rows[r], first);
}

/// The usual number of taps of a convolution.
constexpr std::uint32_t kUsualTaps = 4;

/// Loads the weights [8, 4] of eight channels, one register per tap.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void load_taps(
    const float* weight, __m256 (&taps)[kUsualTaps]) {
  __m256 four[4];  // the weights of channels i and i + 4
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    four[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(weight + i * 4)),
                                   _mm_loadu_ps(weight + (i + 4) * 4), 1);
  const __m256 first_low = _mm256_unpacklo_ps(four[0], four[1]);
  const __m256 first_high = _mm256_unpackhi_ps(four[0], four[1]);
  const __m256 last_low = _mm256_unpacklo_ps(four[2], four[3]);
  const __m256 last_high = _mm256_unpackhi_ps(four[2], four[3]);
  taps[0] = _mm256_shuffle_ps(first_low, last_low, 0x44);
  taps[1] = _mm256_shuffle_ps(first_low, last_low, 0xEE);
  taps[2] = _mm256_shuffle_ps(first_high, last_high, 0x44);
  taps[3] = _mm256_shuffle_ps(first_high, last_high, 0xEE);
}

/// The inputs of a tap in eight channels from `c` on.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 load_inputs(
    const TapInputs::Tap& tap, std::uint32_t c) {
  if (tap.x == nullptr) return _mm256_setzero_ps();
  const __m256 x = load8(tap.x + c);
  return tap.gate == nullptr ? x : _mm256_mul_ps(x, load8(tap.gate + c));
}

}  // namespace

void convolve(const ConvolvedChannels& channels) {
  ConvolvedChannels left = channels;
  std::uint32_t& c = left.channels.begin;
  for (; left.n_taps == kUsualTaps && c + kWidth <= left.channels.end; c += kWidth) {
    __m256 taps[kUsualTaps];
    load_taps(left.weight + std::size_t{c} * kUsualTaps, taps);
    __m256 sum = left.bias == nullptr ? _mm256_setzero_ps() : load8(left.bias + c);
#pragma GCC unroll 4
    for (std::uint32_t t = 0; t < kUsualTaps; ++t)
      sum = _mm256_fmadd_ps(taps[t], load_inputs(left.inputs.tap(t), c), sum);
    _mm256_storeu_ps(left.out + c, sum);
  }
  convolve_channels(left);
}

void advance_state(const StateHead& head, const StateRow* rows, std::uint32_t n_rows) {
  std::uint32_t j = 0;
  for (; j + kColumnParts * kWidth <= head.value_dim; j += kColumnParts * kWidth)
    advance_rows<kColumnParts>(head, rows, n_rows, j);
  for (; j + kWidth <= head.value_dim; j += kWidth) advance_rows<1>(head, rows, n_rows, j);
  for (; j < head.value_dim; ++j)
    for (std::uint32_t r = 0; r < n_rows; ++r) advance_column(after_rows(head, r), rows[r], j);
}

}  // namespace leasehold::avx2
