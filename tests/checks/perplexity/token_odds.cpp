#include "tests/checks/perplexity/token_odds.hpp"

#include <algorithm>

namespace leasehold {

std::vector<double> log_probabilities(std::span<const float> logits) {
  const double highest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  const double log_sum = highest + std::log(sum);
  std::vector<double> log_p(logits.size());
  std::ranges::transform(logits, log_p.begin(), [&](float logit) { return logit - log_sum; });
  return log_p;
}

double divergence(std::span<const double> reference, std::span<const double> model) {
  double sum = 0;
  for (std::size_t i = 0; i < reference.size(); ++i)
    sum += std::exp(reference[i]) * (reference[i] - model[i]);
  return sum;
}

}  // namespace leasehold
