/// Agent of a cell → broker, role operator: until when this host may run the cell's tenants, and
/// its part of their limits. The rules for all messages are in ipc/control/messages.hpp.
///
/// The agent calls `cell.attach` first, then `cell.ceiling`, and reads the parts with
/// `tenant.list`. From then on it sends `cell.ceiling` whenever the ceiling moves and `cell.admit`
/// whenever a part changes. The broker notifies it with `cell.part_changed` as workers follow. All
/// calls of this header get PermissionDenied on a connection that is not the agent's.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/ids.hpp"
#include "ipc/control/messages/common.hpp"
#include "ipc/control/messages/operator.hpp"

namespace leasehold::wire {

/// `cell.attach`: makes the caller the agent of the cell, in place of an earlier one. From then on
/// nothing takes effect that the earlier agent has sent. The ceiling of the same cell stays. Reply:
/// CellAttached.
struct CellAttach : Message<CellAttach> {
  static constexpr std::string_view kMethod = "cell.attach";
  CellName cell;
};

/// Both are 0 until an agent has sent `cell.ceiling`, also after a broker restart.
struct CellAttached : Message<CellAttached> {
  std::uint64_t incarnation = 0;
  std::int64_t ceiling_boottime_ns = 0;
};

/// `cell.ceiling`: no lease of the cell's tenants lasts beyond this time. A moved ceiling moves the
/// deadlines of the live leases at once. Parts of another incarnation become zero, and their leases
/// are revoked with `cell_lost`. Reply: Empty. Errors: PermissionDenied.
///
/// The ceiling is an absolute time, because agent and broker read the same CLOCK_BOOTTIME. A
/// duration would add the time that the message waits.
struct CellCeiling : Message<CellCeiling> {
  static constexpr std::string_view kMethod = "cell.ceiling";
  std::uint64_t incarnation = 0;  ///< 0: the host is not a member.
  /// 0: no lease lasts. The greatest number: the cell has no TTL.
  std::int64_t ceiling_boottime_ns = 0;
};

/// `cell.admit`: creates a tenant of the cell on this host, or replaces its policy. The limits of
/// the policy are this host's part; `max_concurrent` and `max_blocks` of 0 take the part away, and
/// running requests end as after `tenant.admit`. An admission whose revision is not above that of
/// the part in force changes nothing. Reply: CellPart, the part now in force. Errors:
/// PermissionDenied; CellLost unless `incarnation` is that of the newest `cell.ceiling`;
/// IllegalTransition for a tenant that is not of this cell; those of `tenant.admit`.
struct CellAdmit : Message<CellAdmit> {
  static constexpr std::string_view kMethod = "cell.admit";
  TenantPolicy policy;            ///< `cell` is set. All limits that are missing are lifted.
  std::uint64_t incarnation = 0;  ///< 1 or more.
  std::uint64_t revision = 0;     ///< 1 or more. Greater in each admission of this incarnation.
  /// A part begins with what its limits per minute allow in this time, at most a minute. Elsewhere
  /// the same tenant may have used the rest. It does not apply while a worker has a quota of the
  /// tenant. 0 … 60 000.
  std::uint32_t first_credit_ms = 0;
};

/// What the workers of this host may still do under a part. TenantView adds `blocks_held`.
struct CellPart : Message<CellPart> {
  std::uint64_t incarnation = 0;  ///< See CellAdmit, also for the next field.
  std::uint64_t revision = 0;
  /// Upper bound on the requests that run: above `max_concurrent` until enough requests have ended
  /// and workers have confirmed it.
  std::uint32_t may_run = 0;
  std::uint32_t demand = 0;  ///< Running and waiting requests in the workers' last reports.
  /// Grows with each request that a worker has admitted, also with one between two reports, and
  /// when a worker gets a lease after it had none. Counts from the start of the broker.
  std::uint64_t uses = 0;
  /// True if each worker has confirmed its quota, so none uses tokens at an earlier rate.
  bool confirmed = true;
};

/// `cell.part_changed`, a notification of the broker to the agent: what may still be done under a
/// part has changed. It is sent when the part is confirmed, when what exceeds its limits changes,
/// when its demand passes a power of two, and once a second while it is used.
struct CellPartChanged : Message<CellPartChanged> {
  static constexpr std::string_view kMethod = "cell.part_changed";
  TenantId tenant;
  CellPart part;
  std::uint32_t blocks_held = 0;  ///< KV blocks of leases that are not fenced.
};

}  // namespace leasehold::wire
