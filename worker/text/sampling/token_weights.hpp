/// Softmax in integers.
///
/// The most likely token weighs 2^30 and every other token e^((logit - highest) / temperature)
/// times that, rounded down. Integer sums are exact in any order, so results have the same bits on
/// every machine. A token less likely than 2^-30 of the most likely one weighs 0 and is never
/// drawn.
#pragma once

#include <cstdint>
#include <span>

namespace leasehold {

inline constexpr float kTopWeight = 0x1p30f;

/// Computes weights[i] for logits[i]. `highest` is finite and the maximum; -infinity weighs 0.
void compute_token_weights(std::span<const float> logits, float highest, float temperature,
                           std::span<std::uint32_t> weights);

/// Σ e^(logit - highest) for finite logits. Relative error below 1e-6; the same bits everywhere.
double sum_exp(std::span<const float> logits, float highest);

/// The same without AVX2, for tests that compare both.
void compute_token_weights_scalar(std::span<const float> logits, float highest, float temperature,
                                  std::span<std::uint32_t> weights);

}  // namespace leasehold
