/// Revokes leases. Every decider that ends leases calls revoke_leases().
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "broker/decide/decision.hpp"

namespace leasehold {

using ChangesByWorker = std::map<AttachmentId, std::vector<effect::StoreWords::LeaseChange>>;

/// Adds one StoreWords effect per worker, which stores its words and moves its counter once.
void add_store_words(Decision& decision, ChangesByWorker changes);

/// Whether the holders of the leases get `lease.revoked`. Not needed for a holder that released its
/// lease.
enum class HolderNotice { Send, None };

/// Revokes those of `leases` that are Live and leaves the others unchanged. Order of the effects:
/// for each worker all words and one increment of its counter, then the quiet watches, then
/// everything else. Returns the leases that this call revoked. Precondition: every lease is open.
std::vector<LeaseId> revoke_leases(Decision& decision, std::span<const LeaseId> leases,
                                   RevokeReason reason, HolderNotice notice = HolderNotice::Send);

/// Starts one quiet watch per worker and scope; skips leases of workers that are Gone.
void add_quiet_watches(Decision& decision, std::span<const LeaseId> leases);

/// Ids of the open leases that satisfy the predicate.
template <class Predicate>
std::vector<LeaseId> open_leases_where(State& state, Predicate matches) {
  std::vector<LeaseId> found;
  for (const LeaseId id : state.leases.open_leases()) {
    if (matches(state.leases.at(id))) found.push_back(id);
  }
  return found;
}

/// Errors: LeaseRevoked or LeaseFenced with the reason, for a lease that is not Live.
Result<void> require_live(const LeaseRecord& record);

/// The scope to name in an error about the lease: Tenant, Shared or Adapter.
FailureScope failure_scope_of(const LeaseRecord& record);

/// The named lease, or the live leases of the named tenant, which may be none. Errors: BadRequest
/// unless exactly one of the two is given, UnknownLease, StaleGeneration, LeaseFenced,
/// UnknownTenant.
Result<std::vector<LeaseId>> leases_named(State& state, const std::optional<LeaseId>& lease,
                                          const std::optional<TenantId>& tenant);

/// "lease:17.4" or "tenant:acme", as in operator actions. Precondition: one of them is set.
std::string object_name(const std::optional<LeaseId>& lease, const std::optional<TenantId>& tenant);

// memory/drain.cpp

struct Drain {
  TimePoint until;
  RevokeReason reason = RevokeReason::DrainDeadline;  ///< Reason of the revocation at `until`.
};

/// Makes a live lease accept no new requests; it is revoked at the deadline. If both a reclaim and
/// another drain apply, the earlier deadline counts. An acquire in flight is answered with
/// `refusal`, because the lease could not be used.
void start_drain(Decision& decision, LeaseRecord& record, const Drain& drain, const Error& refusal);

}  // namespace leasehold
