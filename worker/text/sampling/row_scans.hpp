/// Passes over a whole row of logits or weights, which take most of a draw's time.
///
/// A set has one function per pass. All sets give the same results, because they only compare
/// values and add integers. Weights are at most 2^30 (token_weights.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace leasehold {

struct CountAndMass {
  std::uint64_t tokens = 0;
  std::uint64_t mass = 0;
  bool operator==(const CountAndMass&) const = default;
};

struct RowScans {
  bool (*all_finite)(std::span<const float> values);
  /// The largest value; -infinity for an empty row. Precondition: no NaN.
  float (*highest)(std::span<const float> values);
  /// The first index of `value`, or the size of the row if the value does not occur.
  std::size_t (*find)(std::span<const float> values, float value);
  /// The number and the total weight of tokens that weigh at least `threshold`, which is at
  /// least 1.
  CountAndMass (*at_least)(std::span<const std::uint32_t> weights, std::uint32_t threshold);
  /// Bit i, below 64, is set if token `from + i` exists and weighs at least `threshold`, which is
  /// at least 1.
  std::uint64_t (*mask_at_least)(std::span<const std::uint32_t> weights, std::uint32_t threshold,
                                 std::size_t from);
};

/// The set for any CPU. Every other set must give the same results.
const RowScans& plain_row_scans();
/// The fastest set for this CPU.
const RowScans& row_scans();

}  // namespace leasehold
