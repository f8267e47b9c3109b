/// Probabilities from logits, in doubles, for measurements. Pure.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace leasehold {

/// ln softmax(logits).
std::vector<double> log_probabilities(std::span<const float> logits);  // [n_vocab]

/// Kullback-Leibler divergence of `model` from `reference` in nats. Both are log probabilities.
double divergence(std::span<const double> reference, std::span<const double> model);

/// Sums over the scored tokens of a text.
struct TextScore {
  std::size_t scored = 0;     ///< Tokens predicted.
  double surprise_nats = 0;   ///< Sum of -ln p(token).
  double divergence_sum = 0;  ///< Over all scored positions; 0 without a reference.
  double worst_divergence = 0;

  double perplexity() const { return std::exp(surprise_nats / count()); }
  double mean_divergence() const { return divergence_sum / count(); }

 private:
  double count() const { return scored == 0 ? 1.0 : static_cast<double>(scored); }
};

}  // namespace leasehold
