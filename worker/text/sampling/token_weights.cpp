#include "worker/text/sampling/token_weights.hpp"

#include <algorithm>
#include <array>

#include "kernels/numerics/exp.hpp"
#include "kernels/numerics/ordered_sum.hpp"

#ifdef __x86_64__
#include "kernels/cpu/avx2/lanes.hpp"
#endif

namespace leasehold {
namespace {

constexpr std::size_t kBlock = 1024;  // floats that stay in the first cache

/// out[i] = e^((logits[i] - highest) / temperature)
using ExpBlock = void (*)(std::span<const float> logits, float highest, float temperature,
                          float* out);

void exp_block(std::span<const float> logits, float highest, float temperature, float* out) {
  for (std::size_t i = 0; i < logits.size(); ++i)
    out[i] = exp_f32((logits[i] - highest) / temperature);
}

#ifdef __x86_64__
[[gnu::target("avx2,fma,f16c")]] void exp_block_avx2(std::span<const float> logits, float highest,
                                                     float temperature, float* out) {
  const __m256 highest8 = _mm256_set1_ps(highest);
  const __m256 temperature8 = _mm256_set1_ps(temperature);
  std::size_t i = 0;
  for (; i + avx2::kWidth <= logits.size(); i += avx2::kWidth) {
    const __m256 below = _mm256_sub_ps(_mm256_loadu_ps(logits.data() + i), highest8);
    _mm256_storeu_ps(out + i, avx2::exp8(_mm256_div_ps(below, temperature8)));
  }
  exp_block(logits.subspan(i), highest, temperature, out + i);
}
#endif

ExpBlock fastest_exp_block() {
#ifdef __x86_64__
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("f16c");
  if (has_avx2) return exp_block_avx2;
#endif
  return exp_block;
}

const ExpBlock kFastest = fastest_exp_block();

void compute_weights(ExpBlock exp_of, std::span<const float> logits, float highest,
                     float temperature, std::span<std::uint32_t> weights) {
  std::array<float, kBlock> exps;
  for (std::size_t from = 0; from < logits.size(); from += kBlock) {
    const std::size_t n = std::min(kBlock, logits.size() - from);
    exp_of(logits.subspan(from, n), highest, temperature, exps.data());
    // Through int32: every instruction set has that conversion.
    for (std::size_t i = 0; i < n; ++i) {
      weights[from + i] =
          static_cast<std::uint32_t>(static_cast<std::int32_t>(exps[i] * kTopWeight));
    }
  }
}

}  // namespace

void compute_token_weights(std::span<const float> logits, float highest, float temperature,
                           std::span<std::uint32_t> weights) {
  compute_weights(kFastest, logits, highest, temperature, weights);
}

void compute_token_weights_scalar(std::span<const float> logits, float highest, float temperature,
                                  std::span<std::uint32_t> weights) {
  compute_weights(exp_block, logits, highest, temperature, weights);
}

double sum_exp(std::span<const float> logits, float highest) {
  std::array<float, kBlock> exps;
  double sum = 0.0;
  for (std::size_t from = 0; from < logits.size(); from += kBlock) {
    const std::size_t n = std::min(kBlock, logits.size() - from);
    kFastest(logits.subspan(from, n), highest, 1.0f, exps.data());
    sum += static_cast<double>(ordered_sum(exps.data(), n));
  }
  return sum;
}

}  // namespace leasehold
