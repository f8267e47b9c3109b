/// Measures the latency of a rebind in each mode by length of text, and the steps that a moving
/// text and another running text miss.
#pragma once

#include <map>
#include <vector>

#include "tools/checks/bench/system.hpp"

namespace leasehold::bench {

struct RebindModesConfig {
  SystemConfig system;
  std::uint32_t context = 4096;  ///< Tokens that the model holds.
  std::uint64_t kv_bytes_per_token = 0;
  std::uint32_t longest = 4096;  ///< Prompts have 64, 256, … tokens up to this.
  std::uint32_t rounds = 5;
  std::uint32_t lifetimes = 20;
};

/// Times in ms, one for each rebind. reprefill and adopt: from the revocation or the SIGKILL to the
/// next token. checkpoint and preemptive: from the session's decision to the worker's reply, while
/// the text continues. worker: for both of these, from the call at the worker to the end of the
/// copy, as reported in its event. copy: the time in which this process copies the same number of
/// bytes. failover: from the session's request to its first token on the new worker. failover_gap:
/// the longest time between two tokens meanwhile. handover: the part of the gap from the end of the
/// old lease to the admission on the new worker, which maps the memory.
struct RebindTimes {
  std::vector<double> step_ms, reprefill_ms, checkpoint_ms, preemptive_ms, worker_ms, copy_ms,
      adopt_ms, failover_ms, failover_gap_ms, handover_ms;
};
using RebindTimesByLength = std::map<std::uint32_t, RebindTimes>;

struct RebindModes {
  RebindTimesByLength by_length;
  std::uint32_t lifetimes = 0;
  /// Longest distance between two steps of a text over these lifetimes; 1 if it missed none.
  std::uint64_t longest_gap_steps = 0;
  /// Steps of the other text, which ran during all measurements except those of deaths.
  std::uint64_t survivor_missed_steps = 0, survivor_steps = 0;
};

/// Errors: those of System and RebindingText.
Result<RebindModes> measure_rebind_modes(const RebindModesConfig& config);

}  // namespace leasehold::bench
