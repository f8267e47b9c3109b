/// Latency of a rebind in each mode by length of text, and the steps that a moving text and another
/// text beside it miss.
#pragma once

#include <map>
#include <vector>

#include "tests/checks/bench/system.hpp"

namespace leasehold::bench {

struct RebindModesConfig {
  SystemConfig system;
  std::uint32_t context = 4096;  ///< Tokens that the model holds.
  std::uint64_t kv_bytes_per_token = 0;
  std::uint32_t longest = 4096;  ///< Prompts have 64, 256, … tokens, at most this many.
  std::uint32_t rounds = 5;
  std::uint32_t lifetimes = 20;
};

/// In ms, one value per rebind.
/// - reprefill and adopt: from the revocation or the SIGKILL to the next token.
/// - checkpoint and preemptive: from the session's decision to the worker's reply, while the text
///   goes on.
/// - worker: of these two modes, from the call at the worker to the end of the copy, from the
///   worker's event.
/// - copy: the same number of bytes copied by this process.
/// - failover: from the session's request to its first token on the new worker.
/// - failover_gap: the longest time between two tokens during a failover.
/// - handover: the part of a failover from the end of the old lease to the admission on the new
///   worker, which maps the memory.
struct RebindTimes {
  std::vector<double> step_ms, reprefill_ms, checkpoint_ms, preemptive_ms, worker_ms, copy_ms,
      adopt_ms, failover_ms, failover_gap_ms, handover_ms;
};
using RebindTimesByLength = std::map<std::uint32_t, RebindTimes>;

struct RebindModes {
  RebindTimesByLength by_length;
  std::uint32_t lifetimes = 0;
  /// The longest gap of a text in these lifetimes, from one of its steps to the next: 1 if it
  /// missed no step.
  std::uint64_t longest_gap_steps = 0;
  /// Steps of the other text, which runs during all rebinds except adoptions and failovers.
  std::uint64_t survivor_missed_steps = 0, survivor_steps = 0;
};

/// Errors: those of System and RebindingText.
Result<RebindModes> measure_rebind_modes(const RebindModesConfig& config);

}  // namespace leasehold::bench
