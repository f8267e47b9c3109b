/// Which tokens stay in the running: top-k, typical, top-p, min-p, in that order, each over what
/// the one before has left.
///
///   top-k      the k most likely (Fan et al. 2018)
///   typical    least surprisingly informative first, until their share is typical_p (Meister et
///              al. 2022): by |entropy + ln p|, which is |ln p - mean of ln p|
///   top-p      most likely first, until their share is top_p (Holtzman et al. 2020)
///   min-p      those at least min_p times as likely as the most likely one (Nguyen et al. 2024)
///
/// Ties go to the lower token id, every filter leaves at least one token, and a filter that keeps
/// everything changes nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/text/sampling/params.hpp"
#include "worker/text/sampling/token_mask.hpp"

namespace leasehold {

bool truncates(const SamplingParams& params);

/// A token in the order of one filter: smaller keys first.
struct RankedToken {
  double key;
  TokenId token;
  std::uint32_t weight;
};

struct TokenScores {
  std::span<const float> logits;
  std::span<const std::uint32_t> weights;  ///< Of compute_token_weights; at least one is not 0.
  float highest = 0.0f;                    ///< Of the logits.
};

/// Adds the tokens that stay to `kept`, which is empty, and returns their weight together.
/// `ranked` is scratch.
std::uint64_t truncate_tokens(const TokenScores& scores, const SamplingParams& params,
                              std::vector<RankedToken>& ranked, TokenMask& kept);

}  // namespace leasehold
