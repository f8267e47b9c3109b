/// The order of arithmetic of layers with recurrent state: causal convolutions, the gated delta
/// rule and Mamba-2.
///
/// Per head and row, with the state M [key_dim, value_dim], a key k, a query q and a value v:
///   d = exp(a · softplus(x + bias))                            decay
///   u = β·(v − d·(Mᵀk))  (delta rule)   or   u = Δ·v  (Mamba-2, Δ = softplus(x + bias))
///   M ← d·M + k uᵀ       y = Mᵀq (+ skip·v)
/// Sums over key_dim ascend, one fma each, from 0. Columns of M do not read each other, so they can
/// be computed in any order and number at a time.
///
/// Source: Yang et al. 2025 (gated delta networks); Dao and Gu 2024 (Mamba-2). C++20-clean.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/numerics/exp.hpp"
#include "kernels/numerics/host_device.hpp"
#include "kernels/numerics/log.hpp"

namespace leasehold {

/// ln(1 + e^x). Above 20 the result is x to the last bit of a float.
LEASEHOLD_HD inline float softplus(float x) {
  constexpr float kLinear = 20.0F;
  if (x > kLinear) return x;
  return static_cast<float>(log_f64(1.0 + static_cast<double>(exp_f32(x))));
}

/// One channel of a causal convolution: from the bias on, inputs ascend, one fma each.
/// `input(t)` is the input of tap t; the last tap is the row's own.
template <class Input>
LEASEHOLD_HD inline float convolve(const float* weights, std::uint32_t n_taps, float bias,
                                   Input&& input) {
  float sum = bias;
  for (std::uint32_t t = 0; t < n_taps; ++t) sum = std::fma(weights[t], input(t), sum);
  return sum;
}

/// What a row's step does to the state of a head.
struct StepTerms {
  float decay;   // d
  float weight;  // β or Δ
};
/// The terms of a step, from the input of its softplus, the head's rate a, and with the delta rule
/// the input of the weight's sigmoid.
LEASEHOLD_HD inline StepTerms step_terms(float input, float rate, float weight_input,
                                         bool is_delta) {
  const float step = softplus(input);
  return {exp_f32(rate * step), is_delta ? sigmoid(weight_input) : step};
}

/// What scales a vector with this sum of squares to length `length`.
LEASEHOLD_HD inline float length_factor(float squares, float epsilon, float length) {
  return length / std::sqrt(squares + epsilon);
}

/// The group whose keys and queries a head uses.
LEASEHOLD_HD constexpr std::uint32_t group_of_head(std::uint32_t head, std::uint32_t n_heads,
                                                   std::uint32_t n_groups, bool alternates) {
  return alternates ? head % n_groups : head / (n_heads / n_groups);
}

/// One row of one head. Vectors of the head begin at the pointers.
struct StateRow {
  const float* query;
  const float* key;
  const float* value;
  float* out;    // [value_dim]
  float decay;   // d
  float weight;  // β or Δ
};

/// What the rows of a head share.
struct StateHead {
  const float* before;  // [key_dim, value_dim]; null: zeros
  float* after;         // [key_dim, value_dim]; may be `before`
  std::uint32_t key_dim;
  std::uint32_t value_dim;
  float skip;     // multiplies values; 0: none
  bool is_delta;  // the delta rule, otherwise Mamba-2
};

/// The head for row `r` of several: rows after the first one read what the row before wrote.
LEASEHOLD_HD inline StateHead after_rows(StateHead head, std::uint32_t r) {
  if (r > 0) head.before = head.after;
  return head;
}

/// Computes column `j` of a row.
LEASEHOLD_HD inline void advance_column(const StateHead& head, const StateRow& row,
                                        std::uint32_t j) {
  const auto at = [&](std::uint32_t i) { return std::size_t{i} * head.value_dim + j; };
  const auto old = [&](std::uint32_t i) {
    return head.before == nullptr ? 0.0F : head.before[at(i)];
  };
  const float value = row.value[j];
  float u = row.weight * value;
  if (head.is_delta) {
    float sum = 0.0F;
    for (std::uint32_t i = 0; i < head.key_dim; ++i) sum = std::fma(old(i), row.key[i], sum);
    u = row.weight * (value - row.decay * sum);
  }
  float y = 0.0F;
  for (std::uint32_t i = 0; i < head.key_dim; ++i) {
    const float m = std::fma(row.key[i], u, row.decay * old(i));
    head.after[at(i)] = m;
    y = std::fma(m, row.query[i], y);
  }
  row.out[j] = head.skip == 0.0F ? y : std::fma(head.skip, value, y);
}

}  // namespace leasehold
