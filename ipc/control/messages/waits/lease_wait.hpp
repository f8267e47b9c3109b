/// Operator → broker: waiting for the end of leases; the host memory in use. The rules for all
/// messages are in ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/control/messages/views.hpp"

namespace leasehold::wire {

/// `lease.wait`: answered when all `leases` are Fenced, or after `timeout_ms`. Changes nothing.
/// Reply: LeasesWaited. A caller that waits for longer repeats the call with the leases that are
/// still open. Errors: UnknownLease for a lease that was never granted; QueueFull when too
/// many calls wait.
struct LeaseWait : Message<LeaseWait> {
  static constexpr std::string_view kMethod = "lease.wait";
  static constexpr std::size_t kMaxLeases = 1 << 15;  ///< Fits a line.
  std::vector<LeaseId> leases;                        ///< 0 … kMaxLeases
  /// Waits also for the tenants' leases on this worker that are Revoked when the call arrives.
  std::optional<std::string> worker;
  bool until_free = false;      ///< Wait until their memory is free or quarantined. May be missing.
  std::int64_t timeout_ms = 0;  ///< 0 … 10 000
};

struct LeasesWaited : Message<LeasesWaited> {
  /// The leases that the wait is over for, in the order of the call, as many as fit the line. One
  /// whose slot has another lease by now is Fenced without a reason.
  std::vector<LeaseView> items;
  std::uint32_t open = 0;  ///< The number of all others: not yet in the state, or left out.
  /// Of the leases not yet in the state the one revoked first, or a live one if none is revoked.
  std::optional<LeaseView> oldest_open;
};

/// Part of the reply to `status`, beside StatusView.
struct HostMemoryInUse : Message<HostMemoryInUse> {
  /// Bytes of host memory, of both pools, that have pages. Memory that is granted and was never
  /// used has none. May be missing.
  std::uint64_t touched_bytes = 0;
};

}  // namespace leasehold::wire
