/// How leases and their memory are taken back; used by every decider that has a reason to.
#pragma once

#include <span>
#include <vector>

#include "broker/decide/decision.hpp"

namespace leasehold {

/// Revokes those of `leases` that are Live: per worker all words and one step of the counter, then
/// quiet watches, then everything else. Leases that are not Live are left as they are.
/// Returns the ones revoked now. Precondition: every id is open.
std::vector<LeaseId> revoke_leases(Decision& decision, std::span<const LeaseId> leases,
                                   RevokeReason reason);

/// One snapshot per worker and scope; leases of workers that are Gone are passed over.
void add_quiet_watches(Decision& decision, std::span<const LeaseId> leases);

struct ProvenLease {
  LeaseId lease;
  FenceProof proof;
};

/// Fences those that are Revoked: words, then memory: punched at once, unmapped by the worker,
/// verified. Precondition: every id is open and covered by its proof.
void fence_all(Decision& decision, std::span<const ProvenLease> leases);

/// The worker mapped nothing of this lease, has unmapped it, or exited: what it held can be
/// verified and counted free. Precondition: Fenced.
void collect_memory(Decision& decision, LeaseRecord& record);

/// Extents of a live lease that the worker does not map (any more).
void scrub_returned(Decision& decision, LeaseRecord& record, std::span<const ExtentId> extents);

/// A region that nobody uses: its bytes are free. Precondition: no users.
void close_region(Decision& decision, const WeightsRegion& region);

/// Closes the lease when its memory is all back.
void close_if_returned(Decision& decision, LeaseRecord& record);

/// Open leases that satisfy the predicate.
template <class Predicate>
std::vector<LeaseId> open_leases_where(State& state, Predicate matches) {
  std::vector<LeaseId> found;
  for (const LeaseId id : state.leases.open_leases()) {
    if (matches(state.leases.at(id))) found.push_back(id);
  }
  return found;
}

void record_lease(Decision& decision, const LeaseRecord& record);
void record_extent(Decision& decision, ExtentId extent, const LeaseRecord* owner);
void record_region(Decision& decision, const WeightsRegion& region, std::string_view state);

/// LeaseRevoked or LeaseFenced with the reason; nothing for a live one.
Result<void> require_live(const LeaseRecord& record);

}  // namespace leasehold
