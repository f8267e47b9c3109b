/// What a text loses to the death of its worker, and to each mode of a rebind, on real processes.
///
/// The bench starts a worker at once when the one before has died, as a service manager does with
/// RestartSec=0.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/result.hpp"

namespace leasehold::bench {

struct RecoverConfig {
  std::string bin_dir;
  std::string model_path;
  std::string arithmetic = "int8";
  std::uint32_t threads = 1;
  std::uint32_t prompt_tokens = 1024;  ///< Of the text whose worker dies.
  std::uint32_t longest = 4096;        ///< Of the texts that are rebound; the shortest has 64.
  std::uint32_t rounds = 5;
  /// While rebinds are measured: the texts of a small model would end before they are rebound.
  std::uint32_t slow_motion_us = 0;
  std::uint32_t lifetimes = 20;  ///< Over which the longest gap of a preemptive text is counted.
};

/// {"recover": {"model", "arithmetic", "prompt_tokens",
///   "adopted": {"kill_to_token_ms", "stages_ms": {…}, "costliest_stage"},
///   "default_client": {"kill_to_token_ms"},
///   "cold": {"kill_to_ready_ms", "kill_to_token_ms"}, "cold_to_adopted", "reprefill_to_adopted",
///   "rebind": {"lengths": {"64": {"step_ms", "reprefill_ms", "checkpoint_ms", "preemptive_ms",
///              "adopt_ms", …}}, "checkpoint_growth", "preemptive_growth", "reprefill_growth"},
///   "preemptive": {"lifetimes", "longest_gap_steps"}, "survivor": {"missed_steps", "steps"}}}.
/// Times are distributions (report.hpp); ratios are those of medians. "cold" kills broker and
/// worker: the text is computed again from its prompt and its tokens. Both read the model from the
/// page cache. All clients but "default_client" retry at once. Growth: from the shortest to the
/// longest text, of the latency in the text's own steps. A gap of 1 step misses none.
/// Errors: those of starts; TimedOut.
Result<nlohmann::json> measure_recover(const RecoverConfig& config);

}  // namespace leasehold::bench
