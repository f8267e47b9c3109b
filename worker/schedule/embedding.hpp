/// An embedding: what a request asks for, and the hidden states that it has pooled so far.
///
/// The result is independent of how the steps divide the text: states are added in the order of
/// positions, in doubles, and rounded to floats once.
///
/// Pure. Threads: one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ipc/control/messages/tenant.hpp"

namespace leasehold {

/// The position whose hidden state is the embedding, or the mean of all.
enum class Pooling : std::uint8_t { Last, Mean };

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

struct EmbeddingRequest {
  Pooling pooling = Pooling::Last;
  std::uint32_t dimensions = 0;  ///< Leading elements to keep; 0: all.
  PooledStates pooled{};  ///< States pooled under this lease. A preempted request keeps them.
};

/// What a model's embeddings are like.
struct EmbeddingModel {
  std::string pooling = "none";  ///< Name of its PoolingType.
  std::uint32_t width = 0;       ///< Elements of a whole vector.
  /// The leading elements of a vector are an embedding, too (Matryoshka Representation Learning,
  /// Kusupati et al. 2022).
  bool is_matryoshka = false;
};

/// Errors: BadRequest for dimensions that the model's vectors do not have, and for a model whose
/// file asks for a pooling that this build does not compute, unless the request names another.
Result<EmbeddingRequest> parse_embedding(const wire::Embedding& asked, const EmbeddingModel& model);

}  // namespace leasehold
