/// What a text loses by the death of its worker, and by each mode of a rebind, on real processes.
///
/// The bench starts a worker as soon as the previous worker has died, as a service manager does
/// with RestartSec=0.
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
  std::uint32_t prompt_tokens = 512;  ///< Per text whose worker dies.
  std::uint32_t longest = 4096;       ///< Longest prompt of the rebound texts; the shortest is 64.
  std::uint32_t rounds = 5;
  /// Slows steps down: texts of a small model would end before their worker is killed or they are
  /// rebound.
  std::uint32_t slow_motion_us = 0;
  std::uint32_t lifetimes = 20;  ///< Lifetimes in which the gap of a preemptive text is counted.
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
/// Times are distributions (report.hpp); ratios are ratios of medians. kill_to_token_ms has a value
/// for each text. "cold" kills broker and worker: the texts are computed again from their prompts
/// and tokens. Both read the model from the page cache. All clients but "default_client" retry at
/// once. A growth is the latency of the longest text divided by that of the shortest text, both in
/// the text's own steps. A gap of 1 step means that no step is missed. The bound of a failover's
/// gap is two steps and the handover. Errors: those of starts; TimedOut.
Result<nlohmann::json> measure_recover(const RecoverConfig& config);

}  // namespace leasehold::bench
