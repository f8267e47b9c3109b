/// The time until a sleeping worker's memory is free, and until it serves again.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/result.hpp"

namespace leasehold::bench {

struct SleepBenchConfig {
  std::string bin_dir;
  std::string model_path;
  std::uint32_t rounds = 5;
};

/// {"sleep": {"load_ms", "wake_ms", "free_ms", "reuse_ms", "free_after_reuse_ms", "wake_to_load"}}:
/// medians over the rounds, with the model in the page cache and the worker's default threads.
/// "load" is from the attach of a new worker to its bound weights, "wake" from `worker.wake` to a
/// worker that serves. "free" is from `worker.sleep` until the operator sees the memory free,
/// "reuse" the t_reuse of that revocation; polls take about a millisecond. Errors: those of System;
/// TimedOut.
Result<nlohmann::json> measure_sleep(const SleepBenchConfig& config);

}  // namespace leasehold::bench
