/// The filters top-k, typical, top-p and min-p. Each filters what the previous one kept.
///
///   top-k      the k most likely (Fan et al. 2018)
///   typical    by ascending |entropy + ln p|, until their share is typical_p (Meister et al.
///              2022); that is |ln p - mean of ln p|
///   top-p      most likely first, until their share is top_p (Holtzman et al. 2020)
///   min-p      those at least min_p times as likely as the most likely one (Nguyen et al. 2024)
///
/// Ties go to the lower token id. Every filter keeps at least one token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/text/sampling/params.hpp"
#include "worker/text/sampling/token_mask.hpp"

namespace leasehold {

bool truncates(const SamplingParams& params);

/// A token with its sort key; smaller keys come first.
struct RankedToken {
  double key;
  TokenId token;
  std::uint32_t weight;
};

struct TokenScores {
  std::span<const float> logits;
  std::span<const std::uint32_t> weights;  ///< From compute_token_weights; at least one is not 0.
  float highest = 0.0f;                    ///< The highest logit.
};

/// Appends the kept tokens to `kept`, which is empty, and returns the sum of their weights.
/// `ranked` is scratch memory.
std::uint64_t truncate_tokens(const TokenScores& scores, const SamplingParams& params,
                              std::vector<RankedToken>& ranked, TokenMask& kept);

}  // namespace leasehold
