#include "worker/engine/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/random.hpp"
#include "kernels/numerics/exp.hpp"

namespace leasehold {
namespace {

Result<TokenId> highest_logit(std::span<const float> logits) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!std::isfinite(logits[i])) {
      return fail(Errc::NumericFault,
                  fmt::format("the model gave a logit of {} for token {}", logits[i], i));
    }
    if (logits[i] > logits[best]) best = i;
  }
  return static_cast<TokenId>(best);
}

}  // namespace

Result<TokenId> sample(std::span<const float> logits, const SamplingParams& params,
                       std::uint32_t position) {
  const TokenId greedy = TRY(highest_logit(logits));
  if (params.temperature == 0.0f) return greedy;
  const float highest = logits[static_cast<std::size_t>(greedy)];
  const auto weight = [&](float logit) {
    return static_cast<double>(exp_f32((logit - highest) / params.temperature));
  };
  double total = 0.0;
  for (const float logit : logits) total += weight(logit);
  const double drawn = static_cast<double>(random_unit_at(params.seed, position)) * total;
  double passed = 0.0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    passed += weight(logits[i]);
    if (drawn < passed) return static_cast<TokenId>(i);
  }
  return greedy;  // drawn == total after rounding
}

}  // namespace leasehold
