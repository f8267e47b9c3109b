/// How attention of one head over a long context is partitioned and merged.
///
/// Positions fall into fixed *partitions* of 256, counted from position 0. Each partition gives a
/// partial result; partials are merged in ascending order. The cuts depend on the position alone,
/// so the bits of a row do not depend on its batch, on chunking or on threads.
///
///   partition:  s_i = (q·k_i)·scale    max = max s_i    e_i = exp(s_i - max)
///               sum = Σ e_i in 32 lanes                 acc = Σ e_i·v_i by fma, ascending i
///   merge:      m = max of max_p       w_p = exp(max_p - m)
///               out = (Σ acc_p·w_p) / (Σ sum_p·w_p), both by fma, ascending p
///
/// A window leaves out earlier positions: i starts inside a partition, and element i keeps its
/// lane. Partitions before the window have no partial result. A sink is one more score in m, and
/// its exp(sink - m) is the first term of the divisor.
///
/// Source: the online softmax (Milakov & Gimelshein 2018), split as in Flash-Decoding. C++20-clean.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/numerics/exp.hpp"
#include "kernels/numerics/host_device.hpp"

namespace leasehold {

inline constexpr std::uint32_t kPartitionPositions = 256;

/// The first position that a row reads; a window of 0 has no limit.
LEASEHOLD_HD constexpr std::uint32_t first_position(std::uint32_t position, std::uint32_t window) {
  return window == 0 || position < window ? 0 : position + 1 - window;
}

/// The number of partitions in a context of `n` positions.
LEASEHOLD_HD constexpr std::uint32_t partition_count(std::uint32_t n) {
  return n / kPartitionPositions + (n % kPartitionPositions != 0 ? 1 : 0);
}

/// The partitions that a row reads.
struct PartitionRange {
  std::uint32_t first;
  std::uint32_t count;
};
LEASEHOLD_HD constexpr PartitionRange partitions_read(std::uint32_t position,
                                                      std::uint32_t window) {
  const std::uint32_t first = first_position(position, window) / kPartitionPositions;
  return {first, position / kPartitionPositions - first + 1};
}
/// The positions of a partition before a row's window, counted from the partition's start.
LEASEHOLD_HD constexpr std::uint32_t positions_skipped(std::uint32_t position, std::uint32_t window,
                                                       std::uint32_t partition) {
  const std::uint32_t first = first_position(position, window);
  const std::uint32_t begin = partition * kPartitionPositions;
  return first > begin ? first - begin : 0;
}

/// The sink of a head without one: its exponential is exactly 0.
inline constexpr float kNoSink = -std::numeric_limits<float>::infinity();

/// A partial is two floats (max, sum), then head_dim floats: the accumulator before division.
inline constexpr std::uint32_t kPartialMax = 0;
inline constexpr std::uint32_t kPartialSum = 1;
inline constexpr std::uint32_t kPartialAcc = 2;
constexpr std::uint32_t partial_floats(std::uint32_t head_dim) {
  return kPartialAcc + head_dim;
}

/// The largest score. NaN scores are skipped; the exponentials then propagate them.
inline float max_score(const float* scores, std::uint32_t n) {
  float max = -std::numeric_limits<float>::infinity();
  for (std::uint32_t i = 0; i < n; ++i) max = scores[i] > max ? scores[i] : max;
  return max;
}

/// Merges the `partials` of one row and head, in ascending order, into its output.
inline void merge_partials(const float* partials,  // [count, partial_floats(head_dim)]
                           std::uint32_t count, std::uint32_t head_dim, float sink, float* out) {
  const std::uint32_t stride = partial_floats(head_dim);
  float max = sink;
  for (std::uint32_t p = 0; p < count; ++p) {
    const float partition_max = partials[p * stride + kPartialMax];
    max = partition_max > max ? partition_max : max;
  }
  float sum = exp_f32(sink - max);
  for (std::uint32_t d = 0; d < head_dim; ++d) out[d] = 0.0F;
  for (std::uint32_t p = 0; p < count; ++p) {
    const float* partial = partials + p * stride;
    const float weight = exp_f32(partial[kPartialMax] - max);
    sum = std::fma(partial[kPartialSum], weight, sum);
    for (std::uint32_t d = 0; d < head_dim; ++d)
      out[d] = std::fma(partial[kPartialAcc + d], weight, out[d]);
  }
  for (std::uint32_t d = 0; d < head_dim; ++d) out[d] /= sum;
}

}  // namespace leasehold
