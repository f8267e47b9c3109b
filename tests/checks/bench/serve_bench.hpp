/// Measures how a long prompt and running streams slow each other down, what a prefix hit saves,
/// and how time is shared.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "common/result.hpp"

namespace leasehold::bench {

/// Names of measurements. A report has only what was measured.
inline constexpr const char* kServeMeasurements[] = {"streams", "prefix", "stalled_index", "shares",
                                                     "tick"};

struct ServeConfig {
  std::string bin_dir;  ///< Directory of leasehold-broker and leasehold-worker.
  std::string model_path;
  std::string shares_model_path;          ///< Always used by "shares"; empty: model_path.
  std::string arithmetic = "auto";        ///< The worker's --arithmetic.
  std::vector<std::string> measurements;  ///< Names from kServeMeasurements; empty: all.
  std::uint32_t streams = 8;              ///< Tenants that generate all the time.
  std::uint32_t prompt_tokens = 4096;     ///< Prompt of the tenant that arrives.
  std::uint32_t rounds = 3;  ///< Each round has the prompt alone, calm streams, and both.
  Duration calm = std::chrono::seconds(10);
};

/// {"serve": {"arithmetic" (the one that ran "streams" or "prefix"), "streams": {"inter_token_us":
/// {"calm": {…}, "long_prompt": {…}, "p99_ratio"}, "first_token_s": {"alone", "beside_streams",
/// "ratio"}, …}, "prefix_hit": {…}, "stalled_index": {…}, "shares": {…}, "tick_us": {"schedule":
/// {…}, "commit": {…}}}}: "streams" has the times between two tokens of a stream, with and without
/// the prompt, and medians of the time to the prompt's first token. One core is left to the
/// clients. Errors: those of System::start and TenantPool.
Result<nlohmann::json> measure_serve(const ServeConfig& config);

}  // namespace leasehold::bench
