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

constexpr std::size_t kBlock = 1024;  // floats that fit in the L1 cache

struct Plain {
  /// out[i] = e^((logits[i] - highest) / temperature)
  static void exponentiate(std::span<const float> logits, float highest, float temperature,
                           float* out) {
    for (std::size_t i = 0; i < logits.size(); ++i)
      out[i] = exp_f32((logits[i] - highest) / temperature);
  }
  /// Converts through int32, because every instruction set has that conversion.
  static void weigh(std::span<const float> exps, std::uint32_t* weights) {
    for (std::size_t i = 0; i < exps.size(); ++i)
      weights[i] = static_cast<std::uint32_t>(static_cast<std::int32_t>(exps[i] * kTopWeight));
  }
};

#ifdef __x86_64__
struct Avx2 {
  [[gnu::target("avx2,fma,f16c")]] static void exponentiate(std::span<const float> logits,
                                                            float highest, float temperature,
                                                            float* out) {
    const __m256 highest8 = _mm256_set1_ps(highest);
    const __m256 temperature8 = _mm256_set1_ps(temperature);
    std::size_t i = 0;
    for (; i + avx2::kWidth <= logits.size(); i += avx2::kWidth) {
      const __m256 below = _mm256_sub_ps(_mm256_loadu_ps(logits.data() + i), highest8);
      _mm256_storeu_ps(out + i, avx2::exp8(_mm256_div_ps(below, temperature8)));
    }
    Plain::exponentiate(logits.subspan(i), highest, temperature, out + i);
  }
  [[gnu::target("avx2,fma,f16c")]] static void weigh(std::span<const float> exps,
                                                     std::uint32_t* weights) {
    const __m256 top = _mm256_set1_ps(kTopWeight);
    std::size_t i = 0;
    for (; i + avx2::kWidth <= exps.size(); i += avx2::kWidth)
      _mm256_storeu_si256(
          reinterpret_cast<__m256i*>(weights + i),
          _mm256_cvttps_epi32(_mm256_mul_ps(_mm256_loadu_ps(exps.data() + i), top)));
    Plain::weigh(exps.subspan(i), weights + i);
  }
};
#endif

bool has_avx2() {
#ifdef __x86_64__
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("f16c");
  return has;
#else
  return false;
#endif
}

template <class Path>
void compute_weights(std::span<const float> logits, float highest, float temperature,
                     std::span<std::uint32_t> weights) {
  std::array<float, kBlock> exps;
  for (std::size_t from = 0; from < logits.size(); from += kBlock) {
    const std::size_t n = std::min(kBlock, logits.size() - from);
    Path::exponentiate(logits.subspan(from, n), highest, temperature, exps.data());
    Path::weigh({exps.data(), n}, weights.data() + from);
  }
}

template <class Path>
double sum_exp_on(std::span<const float> logits, float highest) {
  std::array<float, kBlock> exps;
  double sum = 0.0;
  for (std::size_t from = 0; from < logits.size(); from += kBlock) {
    const std::size_t n = std::min(kBlock, logits.size() - from);
    Path::exponentiate(logits.subspan(from, n), highest, 1.0f, exps.data());
    sum += static_cast<double>(ordered_sum(exps.data(), n));
  }
  return sum;
}

#ifndef __x86_64__
using Avx2 = Plain;
#endif

}  // namespace

void compute_token_weights(std::span<const float> logits, float highest, float temperature,
                           std::span<std::uint32_t> weights) {
  if (has_avx2()) return compute_weights<Avx2>(logits, highest, temperature, weights);
  compute_weights<Plain>(logits, highest, temperature, weights);
}

void compute_token_weights_scalar(std::span<const float> logits, float highest, float temperature,
                                  std::span<std::uint32_t> weights) {
  compute_weights<Plain>(logits, highest, temperature, weights);
}

double sum_exp(std::span<const float> logits, float highest) {
  return has_avx2() ? sum_exp_on<Avx2>(logits, highest) : sum_exp_on<Plain>(logits, highest);
}

}  // namespace leasehold
