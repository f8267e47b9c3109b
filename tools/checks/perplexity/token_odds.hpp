/// Logits as probabilities. Pure; in doubles, for these are measurements and no result of a model.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace leasehold {

/// ln softmax(logits).
std::vector<double> log_probabilities(std::span<const float> logits);  // [n_vocab]

/// Kullback-Leibler divergence of `model` from `reference`, in nats: what is lost by predicting
/// with one what the other knows. Both are log probabilities.
double divergence(std::span<const double> reference, std::span<const double> model);

/// What a text came to.
struct TextScore {
  std::size_t scored = 0;     ///< Tokens predicted.
  double surprise_nats = 0;   ///< Sum of -ln p(token).
  double divergence_sum = 0;  ///< Of all scored positions; 0 without a reference.
  double worst_divergence = 0;

  double perplexity() const { return std::exp(surprise_nats / count()); }
  double mean_divergence() const { return divergence_sum / count(); }

 private:
  double count() const { return scored == 0 ? 1.0 : static_cast<double>(scored); }
};

}  // namespace leasehold
