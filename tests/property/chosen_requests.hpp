/// Requests with all sampling parameters.
#pragma once

#include <vector>

#include "tests/property/four_tenants.hpp"

namespace leasehold::testing {

inline constexpr std::uint32_t kSampledTokens = 24;

/// Sampling parameters, each with a visible effect within a few tokens.
const std::vector<SamplingParams>& all_sampling_params();

/// A request of tenant "t".
PromptRequest sampling_request(const EngineRig& rig, const SamplingParams& sampling, LeaseId lease,
                               const std::string& id);

}  // namespace leasehold::testing
