/// Angles of rotary position embedding, without libm.
///
/// Frequencies and angles are double, computed with fma, division and fixed polynomials only, so
/// they are the same on every CPU; only the finished sine and cosine are rounded to float.
/// Error: within 0.501 ulp (float) of the sine and cosine of the double angle; the angle itself is
/// off by less than 4e-15 of its value, which is 5e-10 at position 131072.
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

/// |angle| ≤ 2³⁰.
SinCos sin_cos(double angle);

/// base^(-2i/rope_dim) for i in [0, rope_dim/2). base > 0; rope_dim even. A model with its own
/// frequency factors divides these by them.
std::vector<double> rope_frequencies(std::uint32_t rope_dim, double base);

/// What a model rotates by: the angle of pair i at position p is p · frequencies[i], and the turned
/// pair is `magnitude` times as long as before.
struct RopeAngles {
  std::vector<double> frequencies;  // [rope_dim / 2]
  float magnitude = 1.0F;
};

/// Stretches a context of `original_context` positions by `factor`: pairs that turn more than 32
/// times over the original context keep their frequency, those that turn less than once have it
/// divided, the ones between are mixed; the magnitude is 0.1 · ln factor + 1.
///
/// Source: Peng et al. 2023, YaRN (sections 3.2 to 3.4, α = 1, β = 32), with the pair numbers at
/// which the mix begins and ends rounded outwards, as published implementations have it.
struct YarnScaling {
  double base;
  std::uint32_t rope_dim;
  double factor;  // above 1
  std::uint32_t original_context;
};
RopeAngles yarn_angles(const YarnScaling& scaling);

/// Fills RopeArgs::cos_sin for these rows.
void fill_rope_cos_sin(std::span<const RowRef> rows, const RopeAngles& angles,
                       float* cos_sin);  // [n_rows, angles.frequencies.size(), 2]

/// One pair turned by its angle, in the written order.
struct RotatedPair {
  float first;
  float second;
};
LEASEHOLD_HD inline RotatedPair rotate_pair(float first, float second, float cos, float sin) {
  return {std::fma(first, cos, -(second * sin)), std::fma(first, sin, second * cos)};
}

/// Where pair i of a head lies: element `first` and the one `stride` after it.
struct PairOffsets {
  std::uint32_t first;
  std::uint32_t stride;
};
LEASEHOLD_HD constexpr PairOffsets pair_offsets(RopeStyle style, std::uint32_t i,
                                                std::uint32_t rope_dim) {
  return style == RopeStyle::Interleaved ? PairOffsets{2 * i, 1} : PairOffsets{i, rope_dim / 2};
}

}  // namespace leasehold
