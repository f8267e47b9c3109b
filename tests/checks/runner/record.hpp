/// The record of a run: the event logs of brokers and workers, the output of tenants, and what the
/// runner observed. The judges read nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ipc/control/events.hpp"
#include "ipc/control/messages.hpp"
#include "tests/checks/runner/script.hpp"
#include "tests/checks/runner/tenant_record.hpp"

namespace leasehold::runner {

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

/// Calls `act(event, time)` for each event of this kind.
template <class Kind>
void for_each_event(const std::vector<events::StampedEvent>& all, auto act) {
  for (const events::StampedEvent& stamped : all)
    if (const auto* event = std::get_if<Kind>(&stamped.event)) act(*event, stamped.at);
}

/// What one process of a tenant received.
struct Text {
  std::string tenant;
  TenantRecord record;
  std::vector<std::int32_t> undisturbed;  ///< Tokens of the undisturbed run.
  bool was_killed = false;
  /// Id of a resumable request; empty: the text ends with its process.
  std::string request_id = {};
  std::string model = {};  ///< The model that the tenant selected; empty: any.
  int exit_status = 0;     ///< The exit code, or 128 + signal.
};

/// True for a notification that a lease of this scope ended: Shared, a published text that the
/// reader used; Adapter, its adapter; Tenant, its own.
inline bool is_end_of(FailureScope scope, const TenantEvent& reported) {
  return reported.event == "revoked" && reported.scope == name(scope);
}

/// True for the scope of a lease that a text depends on besides its own.
inline bool is_dependency(std::string_view scope) {
  return scope == name(FailureScope::Shared) || scope == name(FailureScope::Adapter);
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

/// Result of the search for canaries in memory and streams.
struct CanaryReport {
  std::uint64_t extents_read = 0;
  /// Canaries found in memory or streams of their owner, which shows that the search works.
  std::uint64_t own_found = 0;
  std::vector<std::string> foreign;
};

/// The exit of a broker or worker that the runner did not kill: its exit code, or 128 + signal.
struct ExitRecord {
  std::string program;
  int status = 0;
};

struct Record {
  std::vector<BrokerInstance> brokers;  ///< In the order of their starts.
  std::vector<WorkerInstance> workers;
  std::vector<Text> texts;          ///< In the order of their ends.
  std::vector<Text> swapped_texts;  ///< Texts of the tenant whose requests are swapped.
  /// Preemptions of that tenant that moved blocks to swap. Empty without that tenant.
  std::optional<std::uint64_t> swaps;
  std::uint64_t publications = 0;         ///< Leases under which a text was computed.
  std::optional<UsedBlocks> used_blocks;  ///< Empty without a published text.
  bool has_adapters = false;              ///< Texts of the tenants use adapters.
  std::optional<MemoryTiers> tiers;       ///< Empty without those tenants.
  std::vector<ExitRecord> ends;
  std::optional<CanaryReport> canaries;  ///< Empty without a search.
  std::optional<wire::StatusView> last;  ///< Taken after all requests ended.
  /// Longest lifetime of leases by tenant, for tenants that have one.
  std::map<std::string, Duration> lifetimes;
  ActionCounts actions{};  ///< Actions of the script that were run.
  /// Leases revoked while the reader of the broker's log, or of a worker's, was stopped.
  std::uint64_t revoked_without_reader = 0;
  std::uint64_t calm_texts = 0;  ///< Whole texts that were computed after the last action.
};

}  // namespace leasehold::runner
