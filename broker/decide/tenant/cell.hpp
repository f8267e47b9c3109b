/// Tenants of a cell: only its agent changes them, and their leases end at the ceiling. A tenant
/// without a cell is bound by nothing here.
#pragma once

#include <set>

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Errors: PermissionDenied unless the tenant belongs to this host or the caller is the agent of
/// its cell.
Result<void> require_owner(const State& state, const Caller& caller, const Tenant& tenant);
/// Errors: PermissionDenied unless the tenant belongs to this host.
Result<void> require_local(const Tenant& tenant);
/// Does what require_owner does, and permits the removal of what a cell left behind when no agent
/// is attached.
Result<void> require_remover(const State& state, const Caller& caller, const Tenant& tenant);

/// Errors: CellLost without a ceiling or past it.
Result<void> require_ceiling(const Decision& decision, const Tenant& tenant);
/// Errors: those of require_ceiling; QuotaConcurrent while this host has no part of the limits.
Result<void> require_part(const Decision& decision, const Tenant& tenant);

/// Sets the deadline to `wanted`, or to the ceiling if that is earlier. Without a ceiling the lease
/// of a cell's tenant has expired.
void choose_deadline(const State& state, LeaseRecord& record, TimePoint wanted);
/// Does what choose_deadline does, and stores the deadline in the lease table.
void set_deadline(Decision& decision, LeaseRecord& record, TimePoint wanted);
/// Why a lease ends whose deadline has passed.
RevokeReason reason_at_deadline(const State& state, const LeaseRecord& record, TimePoint now);

/// Precondition: the tenant is of a cell.
wire::CellPart part_of(const State& state, const Tenant& tenant);

/// Notifies the agent which parts of these tenants have changed. Precondition: their quotas are
/// settled.
void tell_agent(Decision& decision, const std::set<TenantId>& tenants);

/// Call it when the connection has closed.
void forget_agent(State& state, ConnectionId connection);

}  // namespace leasehold
