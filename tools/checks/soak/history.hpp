/// Everything a disturbed run left behind: what each broker, worker and tenant process wrote while
/// it lived, and what was seen from outside. The judge decides by nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ipc/control/events.hpp"
#include "ipc/control/messages.hpp"
#include "tools/checks/demo/tenant_record.hpp"

namespace leasehold::soak {

/// One span in which lease ids name one lease each: a broker's instance, or several of a broker
/// that takes up where the one before it ended.
struct BrokerInstance {
  std::vector<events::StampedEvent> events;
  std::vector<wire::StatusView> samples;  ///< Taken all through its instance.
  std::vector<TimePoint> restarts;        ///< When it took up again after a death.
  bool ended_early = false;               ///< Killed for good: leases may be left as they were.

  /// A death lay between: what happened at its moment may not have been written down.
  bool restarted_between(TimePoint from, TimePoint to) const;
};

struct WorkerInstance {
  std::string name;
  std::size_t broker = 0;  ///< Index of the broker it was attached to.
  std::vector<events::StampedEvent> steps;
};

struct TenantInstance {
  std::string tenant;
  demo::TenantRecord record;
  std::vector<std::int32_t> undisturbed;  ///< What it says when nobody disturbs it.
  bool was_killed = false;
};

/// What a look into leased memory and at the streams found; see canary.hpp.
struct CanaryReport {
  std::uint64_t extents_read = 0;
  std::uint64_t own_found = 0;  ///< Tenants' own canaries in their own memory: the look can see.
  std::vector<std::string> foreign;
};

/// How a process ended that nobody killed: its exit code, or 128 + signal.
struct ExitRecord {
  std::string program;
  int status = 0;
};

struct History {
  std::vector<BrokerInstance> brokers;  ///< In the plan in which they lived.
  std::vector<WorkerInstance> workers;
  std::vector<TenantInstance> tenants;
  std::vector<ExitRecord> ends;
  std::optional<CanaryReport> canaries;  ///< Nothing when nobody checked for any.
  std::optional<wire::StatusView> last;  ///< After everybody was done.
};

}  // namespace leasehold::soak
