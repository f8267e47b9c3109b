/// One draw of the sampler.
#pragma once

#include <catch2/catch.hpp>

#include "worker/text/sampling/sampler.hpp"

namespace leasehold::testing {

struct Draw {
  std::vector<float> logits;
  SamplingParams params;
  std::vector<TokenId> history;
  std::uint32_t position = 0;  ///< Number of generated tokens at the end of the history.
  std::optional<TokenMask> allowed;

  Result<SampledToken> result() const {
    SamplerScratch scratch;
    return sample({.logits = logits,
                   .params = &params,
                   .history = history,
                   .position = position,
                   .allowed = allowed ? &*allowed : nullptr},
                  scratch);
  }
  TokenId token() const {
    const Result<SampledToken> sampled = result();
    REQUIRE(sampled);
    return sampled->token;
  }
};

inline TokenMask mask_of(std::size_t n_vocab, std::initializer_list<TokenId> tokens) {
  TokenMask mask(n_vocab);
  for (const TokenId token : tokens) mask.add(token);
  return mask;
}

}  // namespace leasehold::testing
