/// Angles of rotary position embedding, without libm.
///
/// Frequencies and angles are doubles from fma, division and fixed polynomials only, so they are
/// the same on every CPU. Only the final sine and cosine are rounded to float. Error: within 0.501
/// ulp (float) of the sine and cosine of the double angle. The relative error of the angle is below
/// 4e-15, which is 5e-10 at position 131072.
///
/// Source: Su et al. 2021, RoFormer: angle = position · base^(-2i/rope_dim).
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/numerics/host_device.hpp"
#include "kernels/op_args.hpp"

namespace leasehold {

struct SinCos {
  float sin;
  float cos;
};

/// Precondition: |angle| ≤ 2³⁰.
SinCos sin_cos(double angle);

/// base^(-2i/rope_dim) for i in [0, rope_dim/2). base > 0; rope_dim is even. A model with frequency
/// factors divides the results by them.
std::vector<double> rope_frequencies(std::uint32_t rope_dim, double base);

/// The rotation of a model: pair i at position p turns by p · frequencies[i], and its length is
/// multiplied by `magnitude`.
struct RopeAngles {
  std::vector<double> frequencies;  // [rope_dim / 2]
  float magnitude = 1.0F;
};

/// Extends a context of `original_context` positions by `factor`. Pairs with more than `beta_fast`
/// turns over the original context keep their frequency, the frequency of pairs with less than
/// `beta_slow` turns is divided by `factor`, and pairs in between are interpolated.
///
/// Source: Peng et al. 2023, YaRN (sections 3.2 to 3.4; α is `beta_slow` and β `beta_fast`). The
/// limits of the interpolated range are rounded outwards, as in published implementations.
/// `extrapolation` and `log_multiplier` are the parameters of GGUF files that the paper lacks.
struct YarnScaling {
  double base;
  std::uint32_t rope_dim;
  double factor;  // greater than 1
  std::uint32_t original_context;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  /// The share of a kept frequency in its result; 0 divides all frequencies by `factor`, and the
  /// magnitude is 1.
  double extrapolation = 1.0;
  /// The magnitude is (1 + 0.1 · ln factor) / (1 + 0.1 · log_multiplier · ln factor).
  double log_multiplier = 0.0;

  bool operator==(const YarnScaling&) const = default;
};
RopeAngles yarn_angles(const YarnScaling& scaling);

/// Fills HeadsArgs::cos_sin for these rows.
void fill_rope_cos_sin(std::span<const RowRef> rows, const RopeAngles& angles,
                       float* cos_sin);  // [n_rows, angles.frequencies.size(), 2]

/// The temperature of queries at a position: 1 + growth · ln(1 + floor(position / step)). Queries
/// are multiplied by it after their rotation, so that attention over long texts stays sharp.
///
/// Source: Meta AI 2025, Llama 4 (inference-time temperature scaling), with the key names of GGUF.
struct QueryTemperature {
  float growth = 0.0F;     ///< 0: every query keeps its length.
  std::uint32_t step = 0;  ///< Positions; at least 1 if `growth` is not 0.

  bool operator==(const QueryTemperature&) const = default;
};
void fill_query_scales(std::span<const RowRef> rows, const QueryTemperature& temperature,
                       float* scales);  // [n_rows]

/// Rotates pair i of a head by its angle, in the written order. The elements of a pair are
/// neighbours if interleaved, otherwise half of rope_dim apart.
LEASEHOLD_HD inline void rotate_pair(float* head, RopeStyle style, std::uint32_t i,
                                     std::uint32_t rope_dim,
                                     const float* cos_sin) {  // [rope_dim/2, 2]
  const bool is_interleaved = style == RopeStyle::Interleaved;
  float& first = head[is_interleaved ? 2 * i : i];
  float& second = head[is_interleaved ? 2 * i + 1 : i + rope_dim / 2];
  const float cos = cos_sin[2 * i];
  const float sin = cos_sin[2 * i + 1];
  const float rotated = std::fma(first, cos, -(second * sin));
  second = std::fma(first, sin, second * cos);
  first = rotated;
}

}  // namespace leasehold
