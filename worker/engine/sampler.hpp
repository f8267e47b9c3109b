/// Draws the next token from one row of logits.
///
/// Greedy takes the lowest id among the largest logits. Otherwise softmax(logits / temperature) is
/// summed in ascending id, and the number drawn depends on (seed, position) only, so a request
/// gives the same text whatever else runs, and after a rebind.
#pragma once

#include <span>

#include "worker/schedule/request.hpp"

namespace leasehold {

/// Errors: NumericFault when a logit is not finite.
Result<TokenId> sample(std::span<const float> logits, const SamplingParams& params,
                       std::uint32_t position);

}  // namespace leasehold
