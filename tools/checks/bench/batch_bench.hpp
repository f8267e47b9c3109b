/// What a batch gains: tokens per second of several sequences decoded in one step, against the same
/// sequences decoded one after the other.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/result.hpp"

namespace leasehold::bench {

struct BatchConfig {
  std::string model_path;
  std::uint32_t sequences = 4;
  std::uint32_t tokens = 4;  ///< Of each sequence and round.
  std::uint32_t rounds = 7;  ///< Serial and batched in turn, so that both meet the same noise.
};

/// {"batch": {"model", "sequences", "serial_tokens_per_s", "batched_tokens_per_s", "ratio"}}, by
/// the CPU time of the one thread that computes; medians over the rounds. Errors: those of loading.
Result<nlohmann::json> measure_batch(const BatchConfig& config);

}  // namespace leasehold::bench
