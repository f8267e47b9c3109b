/// What snapshots of a recurrent state cost the steps of the texts beside them (StateSnapshots).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/result.hpp"

namespace leasehold::bench {

struct StateBenchConfig {
  std::string model_path;  ///< A model with recurrent layers.
  std::uint32_t streams = 4;
  std::uint32_t prompt_tokens = 1'000;  ///< Of the longest prompt.
  std::uint32_t rounds = 3;             ///< Each runs once with and once without snapshots.
};

/// {"states": {"model", "streams", "state_bytes", "with_ms", "without_ms", "p50_ratio",
/// "p99_ratio"}}: distributions of the CPU time of all steps in which every stream decodes, on one
/// thread in int8 arithmetic, and medians over the rounds of the ratios of their quantiles. Each
/// stream has a lease of its own, and passes one position at which a snapshot is due; these lie at
/// equal distances. Without snapshots the leases have no room for them. The leases' memory is
/// prefaulted, as in a worker. Errors: those of plan_capacity; UnsupportedModel for a model without
/// recurrent layers.
Result<nlohmann::json> measure_states(const StateBenchConfig& config);

}  // namespace leasehold::bench
