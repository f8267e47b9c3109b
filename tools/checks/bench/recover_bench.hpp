/// Measures how much time a text loses when its worker dies, and in each mode of a rebind, with
/// real processes.
///
/// When a worker has died, the bench starts the next one at once, as a service manager does with
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
  std::uint32_t texts = 8;            ///< Texts whose worker dies.
  std::uint32_t prompt_tokens = 512;  ///< Prompt tokens of each of these texts.
  /// Longest text that is rebound, in tokens; the shortest has 64.
  std::uint32_t longest = 4096;
  std::uint32_t rounds = 5;
  /// Slows the engine down, because texts of a small model would end before their worker is killed
  /// or they are rebound.
  std::uint32_t slow_motion_us = 0;
  /// Lifetimes over which the longest gap of a text with preemptive moves is counted.
  std::uint32_t lifetimes = 20;
};

/// {"recover": {"model", "arithmetic", "texts", "prompt_tokens",
///   "adopted": {"kill_to_token_ms", "first_text_ms", "last_text_ms", "stages_ms": {…},
///               "costliest_stage"},
///   "default_client": {"kill_to_token_ms"},
///   "cold": {"kill_to_ready_ms", "kill_to_token_ms"}, "cold_to_adopted", "reprefill_to_adopted",
///   "rebind": {"lengths": {"64": {"step_ms", "reprefill_ms", "checkpoint_ms", "preemptive_ms",
///              "worker_ms", "copy_ms", "adopt_ms", "failover_ms", "failover_gap_ms",
///              "handover_ms"}, …},
///              "checkpoint_growth", "preemptive_growth", "reprefill_growth",
///              "failover_gap_of_bound"},
///   "engine": {"retained_ms", "reloaded_ms"},
///   "preemptive": {"lifetimes", "longest_gap_steps"}, "survivor": {"missed_steps", "steps"}}}.
/// Times are distributions (report.hpp); ratios are those of medians. kill_to_token_ms has one
/// value for each text. For "cold" the bench kills broker and worker, and the texts are computed
/// again from their prompts and tokens. Both kinds of start read the model from the page cache. All
/// clients except "default_client" retry at once. A growth is the ratio of the longest to the
/// shortest text, of the latency measured in steps of that text. A gap of 1 step misses none.
/// "failover_gap_of_bound" compares the gap of a failover with two steps and the handover.
/// Errors: those of starts; TimedOut.
Result<nlohmann::json> measure_recover(const RecoverConfig& config);

}  // namespace leasehold::bench
