/// Sampled engine steps: an operator asks the broker, the broker asks the workers. The rules for
/// all messages are in ipc/control/messages.hpp.
///
///   operator ── step.watch ──► broker ── step.sample ──► worker
///   operator ── step.list ───► broker ◄── step.report ── worker
///
/// Without a watcher no worker samples. Every hand-over keeps only the newest sample, so a slow
/// reader loses samples and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "ipc/control/messages/common.hpp"

namespace leasehold::wire {

/// Most tenants that one sample names.
inline constexpr std::size_t kMaxStepTenants = 16;
inline constexpr std::int64_t kMinStepInterval_ms = 10;
inline constexpr std::int64_t kMaxStepInterval_ms = 60'000;

/// `step.watch`: samples the engine steps of all workers until the caller disconnects. With several
/// watchers, the shortest interval applies. A watcher may repeat the call with another interval.
/// Reply: Empty.
///
/// `step.list` takes no parameters and returns {"items": [StepView, …]}: the newest sample of each
/// worker. Without a watcher it is empty.
struct StepWatch : Message<StepWatch> {
  static constexpr std::string_view kMethod = "step.watch";
  std::int64_t interval_ms = 100;  ///< Shortest time between two samples; 10 … 60 000.
};

/// Call `step.sample`, broker → worker: the shortest time between two reported steps. 0 ends the
/// sampling, and so does the end of the connection. Reply: Empty.
struct StepSampling : Message<StepSampling> {
  static constexpr std::string_view kMethod = "step.sample";
  static constexpr ReplyTimeout kReplyTimeout = ReplyTimeout::Call;
  std::int64_t interval_ms = 0;  ///< 0 … 60 000
};

/// The tokens that one step computed for a tenant.
struct TenantTokens : Message<TenantTokens> {
  TenantId tenant;
  /// Positions of prompts, and of text that was generated under earlier leases.
  std::uint32_t prefill_tokens = 0;
  std::uint32_t decode_tokens = 0;
};

/// Call `step.report`, worker → broker: one committed step. A worker has one such call pending at
/// most, so samples do not pile up in front of a busy broker. Reply: Empty. Errors:
/// PermissionDenied (not an attached worker; a tenant without a lease on it).
struct WorkerStep : Message<WorkerStep> {
  static constexpr std::string_view kMethod = "step.report";
  std::uint64_t step = 0;
  std::int64_t at_boottime_ns = 0;   ///< Just before the commit.
  std::uint64_t duration_us = 0;     ///< From the plan to the end of the commit.
  std::uint32_t n_seqs = 0;          ///< Sequences in the batch.
  std::uint32_t prefill_tokens = 0;  ///< Committed, of all tenants.
  std::uint32_t decode_tokens = 0;   ///< Committed, of all tenants.
  std::uint32_t running = 0;         ///< Requests after the step.
  std::uint32_t waiting = 0;
  std::vector<TenantTokens> tenants;  ///< Those with the most tokens, in falling order.
  std::uint32_t other_tenants = 0;    ///< Number of tenants that are left out.
};

/// An item of `step.list`.
struct StepView : Message<StepView> {
  std::string worker;
  AttachmentId attachment;  ///< Identifies a sample together with the number of the step.
  WorkerStep step;          ///< In JSON its fields are fields of the item.
};

}  // namespace leasehold::wire
