/// Broker → operator: what the audit chain counts. The rules for all messages are in
/// ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <optional>

#include "ipc/control/messages/audit.hpp"

namespace leasehold::wire {

/// The audit chain of a broker with a state directory.
struct AuditState : Message<AuditState> {
  LeaseCounts leases;         ///< Of all tenants, and of shared memory.
  std::uint64_t gaps = 0;     ///< AuditGapRecords ever appended.
  std::uint64_t waiting = 0;  ///< Records about leases that wait for disk space now.
  /// The newest key replaced a lost one: no earlier key vouches for it (AuditKey::previous).
  bool key_is_unlinked = false;
};

/// Part of the reply to `status`, beside StatusView.
struct StatusOfAudit : Message<StatusOfAudit> {
  std::optional<AuditState> audit;  ///< Missing without a state directory.
};

}  // namespace leasehold::wire
