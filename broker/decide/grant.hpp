/// What granting and growing share.
#pragma once

#include <optional>
#include <span>

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Extents per `lease.grant`; a message carries at most 64 descriptors.
inline constexpr std::size_t kExtentsPerGrant = 60;

/// Blocks charged to the tenant's leases that are not fenced, one apart.
std::uint32_t charged_to_others(State& state, const TenantId& tenant, std::optional<LeaseId> apart);

/// PoolExhausted says whether waiting can help: never, after an operator, or when leases end.
Result<void> require_free_extents(const State& state, std::uint32_t wanted, AttachmentId worker);

/// BrokerLost while the lease's worker is on its way back to a broker that was started again: until
/// then it can be asked nothing.
Result<void> require_worker_attached(const State& state, const LeaseRecord& record);

/// A grant that is asked for once more, over another connection of the same user: the caller
/// becomes the lease's holder. Errors: LeaseRevoked, LeaseFenced, StaleGeneration when it is over.
Result<Answer> reassign_holder(Decision& decision, const Caller& caller, Answer answer);
/// The same while the first call `first` still waits for its answer.
void reassign_pending_holder(Decision& decision, const Caller& caller, CallId first);

struct ExtentGrant {
  CallId call;
  std::uint32_t extents = 0;
  std::uint32_t ceiling = 0;  ///< Blocks the lease may be charged at most.
};

/// Takes extents for the lease and sends them to its worker; the call is answered when all are
/// mapped. Precondition: they are free.
void take_extents(Decision& decision, LeaseRecord& record, const ExtentGrant& grant);

/// A revoked lease whose descriptors never left the broker is fenced at once.
void fence_if_never_mapped(Decision& decision, const LeaseRecord& record);

/// Those the worker may use: neither draining nor being scrubbed.
std::vector<ExtentId> owned_extents(const State& state, const LeaseRecord& record);

/// Lowers the charge to what the owned extents hold.
void recharge(Decision& decision, LeaseRecord& record);

/// What a holder is told when all is mapped; the same again when it repeats the call.
Answer acquired_answer(const State& state, const LeaseRecord& record);

/// What the lease holds now, as the answer to a grow or a shrink.
Answer resized(const State& state, const LeaseRecord& record);

}  // namespace leasehold
