/// Functions of single elements: gated activations and soft caps, from our own exponential.
///
/// Source: Hendrycks & Gimpel 2016 (GELU, here with its tanh), Shazeer 2020 (gated linear units),
/// OpenAI 2025 (gpt-oss: clamped gates), Gemma Team 2024 (soft caps). C++20-clean.
#pragma once

#include "kernels/numerics/exp.hpp"
#include "kernels/numerics/host_device.hpp"
#include "kernels/op_args.hpp"

namespace leasehold {
namespace elementwise_order {

/// gelu(x) = x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³))) = x · sigmoid(x·(kLinear + kCubic·x²)).
inline constexpr float kGeluLinear = 0x1.988454p+0F;  ///< 2·√(2/π)
inline constexpr float kGeluCubic = 0x1.2444f2p-4F;   ///< 0.044715 · 2·√(2/π)
inline constexpr float kGateLimit = 7.0F;
inline constexpr float kGateSlope = 1.702F;

}  // namespace elementwise_order

LEASEHOLD_HD inline float gelu(float x) {
  namespace e = elementwise_order;
  return x / (1.0F + exp_f32(-(x * std::fma(e::kGeluCubic, x * x, e::kGeluLinear))));
}

/// g · sigmoid(1.702·g) · (u + 1), where g is at most 7 and u between -7 and 7. A NaN stays NaN.
LEASEHOLD_HD inline float clamped_swiglu(float gate, float up) {
  namespace e = elementwise_order;
  const float g = e::kGateLimit < gate ? e::kGateLimit : gate;
  const float below = e::kGateLimit < up ? e::kGateLimit : up;
  const float u = -e::kGateLimit > below ? -e::kGateLimit : below;
  return g / (1.0F + exp_f32(-(g * e::kGateSlope))) * (u + 1.0F);
}

/// The gated activation of an element.
LEASEHOLD_HD inline float gated(Activation activation, float gate, float up) {
  if (activation == Activation::ClampedSwiGlu) return clamped_swiglu(gate, up);
  if (activation == Activation::Sigmoid) return sigmoid(gate) * up;
  if (activation == Activation::ReGlu) return (gate > 0.0F ? gate : 0.0F) * up;
  return (activation == Activation::GeGlu ? gelu(gate) : silu(gate)) * up;
}

/// cap · tanh(x / cap).
LEASEHOLD_HD inline float softcapped(float x, float cap) {
  return cap * (1.0F - 2.0F / (1.0F + exp_f32(x * (2.0F / cap))));
}

}  // namespace leasehold
