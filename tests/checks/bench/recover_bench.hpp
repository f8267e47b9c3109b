/// What a text loses by the death of its worker, by the loss of the engine lease, and by each mode
/// of a rebind, on real processes.
///
/// The bench starts a worker as soon as the previous worker has died, as a service manager does
/// with RestartSec=0.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "ipc/control/event_file.hpp"
#include "tests/checks/bench/figures.hpp"
#include "tests/checks/bench/rebinding_text.hpp"
#include "tests/checks/bench/system.hpp"

namespace leasehold::bench {

struct RecoverConfig {
  std::string bin_dir;
  std::string model_path;
  std::string arithmetic = "int8";
  std::uint32_t threads = 1;
  std::uint32_t texts = 8;            ///< Texts whose worker dies, each of another tenant.
  std::uint32_t prompt_tokens = 512;  ///< Per text whose worker dies.
  std::uint32_t longest = 4096;  ///< Most tokens of a prompt that is rebound; they have 64, 256, …
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
/// Times are distributions (statistics.hpp); ratios are ratios of medians. kill_to_token_ms has a
/// value for each text. "cold" kills broker and worker: the texts are computed again from their
/// prompts and tokens. Both read the model from the page cache. All clients but "default_client"
/// retry at once. A growth is the latency of the longest text divided by that of the shortest text,
/// both in the text's own steps. A gap of 1 step means that no step is missed. The bound of a
/// failover's gap is two steps and the handover. Errors: those of starts; TimedOut.
Result<nlohmann::json> measure_recover(const RecoverConfig& config);

// The parts. Each adds the samples of its figures above. Errors: those of RebindingText and System.

/// Adds "adopted", "default_client" and "cold". Errors: SystemError unless each text was adopted.
Result<void> measure_deaths_of_texts(const RecoverConfig& config, Samples& samples);

/// Adds "engine": from the revocation of a worker's engine lease to the next token of its texts, on
/// weights that the broker retained, or that the worker reads again from a new file. Errors:
/// SystemError if weights were read again although they were retained, if they were not read
/// although the file is new, or if the model cannot be copied.
Result<void> measure_engine_losses(const RecoverConfig& config, Samples& samples);

/// Steps of a worker in which a running text had no row.
struct MissedSteps {
  std::uint64_t longest_gap = 0;  ///< From one of the text's steps to the next; 1: none missed.
  std::uint64_t missed = 0;
  std::uint64_t taken = 0;  ///< Steps with a row of the text.
};

/// Counts from the first to the last step that has a row of one of these leases. A step is missed
/// only if it ran for other texts, so another text must run meanwhile. Pure.
MissedSteps missed_steps(std::span<const events::StampedEvent> steps,
                         const std::vector<LeaseId>& leases);

struct RebindModes {
  std::vector<std::uint32_t> lengths;  ///< Ascending.
  std::uint32_t lifetimes = 0;
  std::uint64_t longest_gap_steps = 0;  ///< Of a text in these lifetimes.
  MissedSteps survivor;  ///< Of the other text, which runs except during adoptions and failovers.
};

/// Adds "rebind.lengths", in ms, one value per rebind:
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
/// `context` is the number of tokens that the model holds.
Result<RebindModes> measure_rebind_modes(const RecoverConfig& config, std::uint32_t context,
                                         std::uint64_t kv_bytes_per_token, Samples& samples);

/// The system in which all this is measured.
SystemConfig system_config(const RecoverConfig& config);

/// Starts text number `number`, of a tenant of its own, with more tokens than it needs.
Result<std::unique_ptr<RebindingText>> start_text(System& system, std::uint32_t number,
                                                  std::uint32_t prompt_tokens,
                                                  const client::RetryPolicy& retry);

/// A stage of a worker's start. The log line that has these words ends it.
struct StartStage {
  const char* name;
  std::string_view words;
};
/// In order.
inline constexpr std::array<StartStage, 5> kStartStages{{{"exec", " starting model="},
                                                         {"tokenizer", " model opened "},
                                                         {"attach", " attached to the broker "},
                                                         {"map", " weights bound "},
                                                         {"ready", " ready name="}}};

/// The ends of the stages, in µs since 1970.
using StartTimes = std::array<std::int64_t, kStartStages.size()>;

/// Finds the last start in the log, whose times are local times.
/// Errors: BadRequest if the log lacks a stage, or a time cannot be read.
Result<StartTimes> last_start(std::string_view log);

}  // namespace leasehold::bench
