#include "worker/schedule/embedding.hpp"

#include <algorithm>
#include <cmath>

#include "common/expects.hpp"

namespace leasehold {

void PooledStates::add(std::span<const float> state) {
  if (sums_.empty()) sums_.resize(state.size());
  expects(state.size() == sums_.size(), "all hidden states have the model's width");
  for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += static_cast<double>(state[i]);
  ++count_;
}

bool PooledStates::is_finite() const {
  return std::ranges::all_of(sums_, [](double sum) { return std::isfinite(sum); });
}

/// The number of states divides the length as it divides each element, so it cancels.
std::vector<float> PooledStates::embedding(std::uint32_t dimensions) const {
  expects(count_ > 0, "an embedding has at least one state");
  const std::size_t kept = dimensions == 0 ? sums_.size() : dimensions;
  const std::span<const double> sums = std::span(sums_).first(std::min(kept, sums_.size()));
  double squares = 0.0;
  for (const double sum : sums) squares += sum * sum;
  const double length = std::sqrt(squares);  // IEEE 754 defines its result exactly
  std::vector<float> embedding;
  embedding.reserve(sums.size());
  for (const double sum : sums)
    embedding.push_back(static_cast<float>(length > 0.0 ? sum / length : sum));
  return embedding;
}

}  // namespace leasehold
