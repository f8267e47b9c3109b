/// Everything the demo observed; the checks read nothing else.
#pragma once

#include <string>
#include <vector>

#include "ipc/control/events.hpp"
#include "ipc/control/messages.hpp"
#include "tests/checks/demo/memory_check.hpp"
#include "tests/checks/demo/tenant_record.hpp"

namespace leasehold::demo {

/// One tenant of the scenario. B's lease is revoked, C's process is killed, A and D are
/// undisturbed.
struct TenantSpec {
  std::string name;
  std::string prompt;
  std::string temperature;
  std::uint64_t seed = 0;
  bool rebind = false;
  bool chat = false;    ///< The prompt is a question, sent through the model's chat template.
  std::string expects;  ///< A word that the answer must contain; empty: none.
};

struct TenantResult {
  TenantSpec spec;
  TenantRecord undisturbed;  ///< The same request, run alone before.
  TenantRecord observed;     ///< With the other tenants, the revocation and the kill.
  TenantRecord recovered;    ///< All rebind, and their worker is killed.
};

struct CheckedExtent {
  ExtentId extent;
  LeaseId lease;
  MemoryReading before;     ///< While the lease was live.
  MemoryReading after;      ///< After the broker reported all memory free.
  bool still_held = false;  ///< The broker lists the extent as not free.
};

struct Observation {
  std::vector<TenantResult> results;
  std::string revoked = "B";
  std::string killed = "C";
  std::size_t enough_tokens = 64;  ///< Includes tokens after the revocation and the kill.
  std::vector<wire::LeaseView> leases;
  std::vector<events::StampedEvent> events;
  bool reads_memory = true;  ///< False on a GPU: its memory has no readable descriptor.
  std::vector<CheckedExtent> extents;
  std::vector<wire::StatusView> samples;  ///< Taken during the whole run.
  std::uint64_t adopted = 0;              ///< Texts whose memory the worker's successor adopted.
  wire::StatusView last;                  ///< After all requests ended.

  /// Precondition: a tenant has this name.
  const TenantResult& result(const std::string& name) const;
  /// Null when the broker does not list it.
  const wire::LeaseView* lease(LeaseId id) const;
};

}  // namespace leasehold::demo
