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

/// One broker process, or several if each continued the state of its predecessor. Within an
/// instance, a lease id names one lease.
struct BrokerInstance {
  std::vector<events::StampedEvent> events;
  std::vector<wire::StatusView> samples;  ///< Taken while the broker ran.
  std::vector<TimePoint> restarts;        ///< Start times of its later processes.
  bool ended_early = false;               ///< Killed without a successor, so leases may be open.

  /// True if the broker was restarted between these times, so that events may be missing.
  bool restarted_between(TimePoint from, TimePoint to) const;
};

struct WorkerInstance {
  std::size_t broker = 0;  ///< Index of the broker instance it was attached to.
  std::vector<events::StampedEvent> steps;
};

struct TenantInstance {
  std::string tenant;
  demo::TenantRecord record;
  std::vector<std::int32_t> undisturbed;  ///< Tokens of the undisturbed run.
  bool was_killed = false;
  /// Id of a resumable request; empty: the text ends with its process.
  std::string request_id = {};
};

/// A text of the tenant whose requests are swapped (tight_tenant.hpp).
struct TightText {
  std::uint32_t number = 0;  ///< Texts of equal number are equal.
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> undisturbed;  ///< Tokens of the undisturbed run.
  bool is_complete = false;
};

/// True for a notification that the published text ended, and not the reader's own lease.
inline bool is_text_end(const demo::TenantEvent& reported) {
  return reported.event == "revoked" && reported.scope == name(FailureScope::Shared);
}

/// True if a lease ended because another tenant's reserve needs its memory.
inline bool is_reclaim(const events::LeaseStateChanged& event) {
  return event.state == LeaseState::Revoked && event.reason == RevokeReason::PreemptedByPriority;
}

/// Blocks that tenants used instead of computing them, as reported by workers.
struct UsedBlocks {
  std::uint64_t published = 0;     ///< Blocks of the published text.
  std::uint64_t cross_tenant = 0;  ///< Blocks cached for another tenant, whose use must not happen.
};

/// The two tenants between which the broker moves memory.
struct MemoryTiers {
  std::string guaranteed, scavenger;
};

/// Result of the search for canaries in memory and streams (canary.hpp).
struct CanaryReport {
  std::uint64_t extents_read = 0;
  /// Canaries found in memory or streams of their owner, which shows that the search works.
  std::uint64_t own_found = 0;
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
  /// Preemptions of the tight tenant that moved blocks to swap. Empty without that tenant.
  std::optional<std::uint64_t> swaps;
  std::uint64_t publications = 0;         ///< Leases under which a text was computed.
  std::optional<UsedBlocks> used_blocks;  ///< Empty without a published text.
  std::optional<MemoryTiers> tiers;       ///< Empty without those tenants.
  std::vector<ExitRecord> ends;
  std::optional<CanaryReport> canaries;  ///< Empty without a search.
  std::optional<wire::StatusView> last;  ///< Taken after all requests ended.
  /// Longest lifetime of leases by tenant, for tenants that have one.
  std::map<std::string, Duration> lifetimes;
};

}  // namespace leasehold::soak
