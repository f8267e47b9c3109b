/// What an embedding request asks for, and the hidden states that it has pooled so far.
///
/// The result is independent of how the steps divide the text: states are added in the order of
/// positions, in doubles, and rounded to floats once.
///
/// Pure. Threads: one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/model/config.hpp"

namespace leasehold {

struct EmbeddingParams {
  Pooling pooling = Pooling::Last;  ///< Last or Mean.
  std::uint32_t dimensions = 0;     ///< Leading elements to keep; 0: all.
};

/// The sum of hidden states. With Pooling::Last it is the state of the last position.
class PooledStates {
 public:
  /// Adds the state of the next position. All states have the same length.
  void add(std::span<const float> state);
  /// The number of states. With Pooling::Mean these are the first positions of the text.
  std::uint32_t count() const { return count_; }
  bool is_finite() const;
  /// The first `dimensions` elements (0: all) of the mean, scaled to the Euclidean length 1. A mean
  /// of length 0 stays as it is. Precondition: `count` is not 0.
  std::vector<float> embedding(std::uint32_t dimensions) const;

 private:
  std::vector<double> sums_;  // [n_embd]
  std::uint32_t count_ = 0;
};

}  // namespace leasehold
