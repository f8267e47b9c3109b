/// What batching gains: tokens per second of several sequences decoded in one step, compared with
/// one sequence per step.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/result.hpp"

namespace leasehold::bench {

struct BatchConfig {
  std::string model_path;
  std::uint32_t sequences = 4;
  std::uint32_t tokens = 4;  ///< Per sequence and round.
  std::uint32_t rounds = 7;  ///< Each serial and batched, so that both have the same noise.
};

/// {"batch": {"model", "sequences", "serial_tokens_per_s", "batched_tokens_per_s", "ratio"}},
/// medians over the rounds. Times are CPU time of the compute thread. Errors: those of loading.
Result<nlohmann::json> measure_batch(const BatchConfig& config);

}  // namespace leasehold::bench
