/// Everything the demo saw, gathered before anything is judged.
#pragma once

#include <string>
#include <vector>

#include "ipc/control/events.hpp"
#include "ipc/control/messages.hpp"
#include "tools/checks/demo/memory_check.hpp"
#include "tools/checks/demo/tenant_record.hpp"

namespace leasehold::demo {

/// One tenant of the scenario. A and D are left alone, B's lease is revoked, C's process is killed.
struct TenantSpec {
  std::string name;
  std::string prompt;
  std::string temperature;
  std::uint64_t seed = 0;
  bool rebind = false;
};

struct TenantResult {
  TenantSpec spec;
  TenantRecord undisturbed;  ///< The same request, alone and before.
  TenantRecord observed;     ///< With three others, a revocation and a death beside it.
};

struct CheckedExtent {
  ExtentId extent;
  LeaseId lease;
  MemoryReading before;     ///< While the lease was live.
  MemoryReading after;      ///< Once the broker called its memory reusable.
  bool still_held = false;  ///< The broker still lists it under that lease.
};

struct Observation {
  std::vector<TenantResult> results;
  std::string revoked = "B";
  std::string killed = "C";
  std::vector<wire::LeaseView> leases;
  std::vector<events::StampedEvent> events;
  bool reads_memory = true;  ///< False of a card's: nobody reads that through a descriptor.
  std::vector<CheckedExtent> extents;
  std::vector<wire::StatusView> samples;  ///< Taken all through the run.
  wire::StatusView last;                  ///< After everybody was done.

  /// Precondition: there is one with this name.
  const TenantResult& result(const std::string& name) const;
  /// Nothing when the broker does not list it.
  const wire::LeaseView* lease(LeaseId id) const;
};

}  // namespace leasehold::demo
