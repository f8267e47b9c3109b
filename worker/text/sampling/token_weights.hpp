/// Softmax in whole numbers.
///
/// The most likely token weighs 2^30 and every other token e^((logit - highest) / temperature)
/// times that, rounded down. Sums of whole numbers are exact in any order, so whoever adds them up
/// or compares them gets the same bits on every machine. What is less likely than a 2^30th of the
/// most likely token weighs nothing and is never drawn.
#pragma once

#include <cstdint>
#include <span>

namespace leasehold {

inline constexpr float kTopWeight = 0x1p30f;

/// weights[i] for logits[i]. No logit is above `highest`, which is finite; -infinity weighs 0.
void compute_token_weights(std::span<const float> logits, float highest, float temperature,
                           std::span<std::uint32_t> weights);

/// Σ e^(logit - highest), for finite logits. Within 1e-6 of it, relatively; the same bits anywhere.
double sum_exp(std::span<const float> logits, float highest);

/// The same without AVX2, whatever the CPU has: for tests that compare both.
void compute_token_weights_scalar(std::span<const float> logits, float highest, float temperature,
                                  std::span<std::uint32_t> weights);

}  // namespace leasehold
