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

/// Fills RopeArgs::cos_sin for these rows.
void fill_rope_cos_sin(std::span<const RowRef> rows, std::span<const double> frequencies,
                       float* cos_sin);  // [n_rows, frequencies.size(), 2]

/// One pair turned by its angle, in the written order.
struct RotatedPair {
  float first;
  float second;
};
inline RotatedPair rotate_pair(float first, float second, float cos, float sin) {
  return {std::fma(first, cos, -(second * sin)), std::fma(first, sin, second * cos)};
}

/// Where pair i of a head lies: element `first` and the one `apart` after it.
struct PairPlace {
  std::uint32_t first;
  std::uint32_t apart;
};
constexpr PairPlace pair_place(RopeStyle style, std::uint32_t i, std::uint32_t rope_dim) {
  return style == RopeStyle::Interleaved ? PairPlace{2 * i, 1} : PairPlace{i, rope_dim / 2};
}

}  // namespace leasehold
