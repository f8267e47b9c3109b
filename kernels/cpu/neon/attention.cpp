#include "kernels/cpu/neon/attention.hpp"

#include <cmath>

#include "kernels/cpu/attend.hpp"
#include "kernels/cpu/neon/lanes.hpp"
#include "kernels/cpu/scalar_rows.hpp"
#include "kernels/numerics/kv_q8.hpp"

namespace leasehold::neon {
namespace {

/// Elements of a value whose sums over all positions stay in registers.
constexpr std::uint32_t kElementsAtOnce = 32;

/// Adds elements [d, d + kElements) of the weighted values to the accumulator of a query.
template <class Kv, std::uint32_t kElements>
void weigh_elements(const AttentionTile& tile, const WeighRun& run, std::uint32_t query,
                    std::uint32_t d) {
  constexpr std::uint32_t kRegisters = kElements / kWidth;
  const float* weights = weights_of(tile, query);
  float* acc = tile.partial[query] + kPartialAcc + d;
  float32x4_t sums[kRegisters];
#pragma GCC unroll 8
  for (std::uint32_t g = 0; g < kRegisters; ++g) sums[g] = load4(acc + g * kWidth);
  for (std::uint32_t i = run.begin; i < run.end; ++i) {
    const Kv* value = value_at<Kv>(tile, i) + d;
#pragma GCC unroll 8
    for (std::uint32_t g = 0; g < kRegisters; ++g)
      sums[g] = vfmaq_n_f32(sums[g], load4(value + g * kWidth), weights[i]);
  }
#pragma GCC unroll 8
  for (std::uint32_t g = 0; g < kRegisters; ++g) vst1q_f32(acc + g * kWidth, sums[g]);
}

struct Ops {
  static constexpr std::uint32_t kRunQueries = kMaxTileQueries;
  static constexpr bool kWidensKeys = true;

  /// n is a multiple of kBlockTokens.
  static const float* widen(const Half* from, std::uint32_t n, float* to) {
    for (std::uint32_t i = 0; i < n; i += kWidth) vst1q_f32(to + i, load4(from + i));
    return to;
  }
  static void widen_codes(const std::int8_t* q, const float* scales, std::uint32_t n, float* to) {
    for (std::uint32_t i = 0; i < n; i += 2 * kWidth) {
      const int16x8_t codes = vmovl_s8(vld1_s8(q + i));
      const float scale = scales[i / kKvScaleBlock];
      const float32x4_t low = vcvtq_f32_s32(vmovl_s16(vget_low_s16(codes)));
      const float32x4_t high = vcvtq_f32_s32(vmovl_s16(vget_high_s16(codes)));
      vst1q_f32(to + i, vmulq_n_f32(low, scale));
      vst1q_f32(to + i + kWidth, vmulq_n_f32(high, scale));
    }
  }

  static std::uint32_t score_block(const AttentionTile& tile, const float* keys,
                                   std::uint32_t query, std::uint32_t at) {
    float* scores = weights_of(tile, query) + at;
    for (std::uint32_t i = 0; i < KvLayout::kBlockTokens; ++i)
      scores[i] =
          dot(keys + std::size_t{i} * tile.head_dim, tile.q[query], tile.head_dim) * tile.scale;
    return 1;
  }

  static void softcap(float* scores, std::uint32_t n, float cap) {
    scalar::softcap(scores, n, cap);
  }
  static void softmax(float* scores, std::uint32_t n, float* partial) {
    scalar::softmax(scores, n, partial);
  }

  template <class Kv>
  static void weigh(const AttentionTile& tile, const WeighRun& run) {
    for (std::uint32_t query = run.first_query; query < run.first_query + run.n_queries; ++query) {
      std::uint32_t d = 0;
      for (; d + kElementsAtOnce <= tile.value_dim; d += kElementsAtOnce)
        weigh_elements<Kv, kElementsAtOnce>(tile, run, query, d);
      for (; d + kWidth <= tile.value_dim; d += kWidth)
        weigh_elements<Kv, kWidth>(tile, run, query, d);
      for (; d < tile.value_dim; ++d) {
        float& acc = tile.partial[query][kPartialAcc + d];
        for (std::uint32_t i = run.begin; i < run.end; ++i)
          acc = std::fma(weights_of(tile, query)[i], as_float(value_at<Kv>(tile, i)[d]), acc);
      }
    }
  }
};

}  // namespace

void attend(const AttentionTile& tile) {
  attend_with<Ops>(tile);
}

}  // namespace leasehold::neon
