/// The history of a round: the event logs of brokers and workers, the output of tenants, and what
/// the soak observed. The judge reads nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ipc/control/events.hpp"
#include "ipc/control/messages.hpp"
#include "tests/checks/demo/tenant_record.hpp"

namespace leasehold::soak {

/// One broker process, or several if each continued the state of the one before. A lease id names
/// one lease within it.
struct BrokerInstance {
  std::vector<events::StampedEvent> events;
  std::vector<wire::StatusView> samples;  ///< Taken while it ran.
  std::vector<TimePoint> restarts;        ///< Start times of its later processes.
  bool ended_early = false;  ///< Killed, and no other process continued: leases may be open.

  /// True when the broker was restarted in between, so that events may be missing.
  bool restarted_between(TimePoint from, TimePoint to) const;
};

struct WorkerInstance {
  std::size_t broker = 0;  ///< Index of the broker it was attached to.
  std::vector<events::StampedEvent> steps;
};

struct TenantInstance {
  std::string tenant;
  demo::TenantRecord record;
  std::vector<std::int32_t> undisturbed;  ///< Tokens of the undisturbed run.
  bool was_killed = false;
  std::string request_id = {};  ///< Of a resumable text; empty: the text ends with its process.
};

/// A text of the tenant whose requests are swapped (tight_tenant.hpp).
struct TightText {
  std::uint32_t number = 0;  ///< Texts of equal number are equal.
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> undisturbed;  ///< Tokens of the undisturbed run.
  bool is_complete = false;
};

/// A reader was notified that the published text ended, and not its own lease.
inline bool is_text_end(const demo::TenantEvent& reported) {
  return reported.event == "revoked" && reported.scope == name(FailureScope::Shared);
}

/// A lease ended because another tenant's reserve needs its memory.
inline bool is_reclaim(const events::LeaseStateChanged& event) {
  return event.state == LeaseState::Revoked && event.reason == RevokeReason::PreemptedByPriority;
}

/// What tenants used instead of computing it, as the workers reported it.
struct UsedBlocks {
  std::uint64_t published = 0;     ///< Of the published text.
  std::uint64_t cross_tenant = 0;  ///< Cached for another tenant, which must not happen.
};

/// The two tenants between which the broker moves memory.
struct MemoryTiers {
  std::string guaranteed, scavenger;
};

/// Result of the search for canaries in memory and streams (canary.hpp).
struct CanaryReport {
  std::uint64_t extents_read = 0;
  std::uint64_t own_found =
      0;  ///< Canaries found with their owner, which shows that the search works.
  std::vector<std::string> foreign;
};

/// The exit of a process that the soak did not kill: its exit code, or 128 + signal.
struct ExitRecord {
  std::string program;
  int status = 0;
};

struct History {
  std::vector<BrokerInstance> brokers;  ///< In the order of their starts.
  std::vector<WorkerInstance> workers;
  std::vector<TenantInstance> tenants;
  std::vector<TightText> tight_texts;
  /// Preemptions of that tenant that moved blocks to swap. Nothing without that tenant.
  std::optional<std::uint64_t> swaps;
  std::uint64_t publications = 0;         ///< Leases under which a text was computed.
  std::optional<UsedBlocks> used_blocks;  ///< Nothing without a published text.
  std::optional<MemoryTiers> tiers;       ///< Nothing without those tenants.
  std::vector<ExitRecord> ends;
  std::optional<CanaryReport> canaries;       ///< Nothing without a search.
  std::optional<wire::StatusView> last;       ///< After all requests ended.
  std::map<std::string, Duration> lifetimes;  ///< Of the leases of tenants that have a longest one.
};

}  // namespace leasehold::soak
