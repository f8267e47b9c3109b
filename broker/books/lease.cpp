#include "broker/books/lease.hpp"

#include "common/expects.hpp"

namespace leasehold {

// The transitions of the types below match those of the lease word.
static_assert(may_become(LeaseState::Closed, LeaseState::Live));
static_assert(may_become(LeaseState::Live, LeaseState::Revoked));
static_assert(may_become(LeaseState::Revoked, LeaseState::Fenced));
static_assert(!may_become(LeaseState::Live, LeaseState::Fenced));

Lease<Live> open_lease(LeaseId id, AttachmentId worker) {
  expects(id.generation != 0, "generation zero names no lease");
  return {id, worker, Live{}};
}

Lease<Revoked> revoke(Lease<Live>&& lease, RevokeReason reason, TimePoint now) {
  expects(reason != RevokeReason::None, "a revocation has a reason");
  return {lease.id(), lease.worker(), Revoked{reason, now}};
}

Lease<Fenced> fence(Lease<Revoked>&& lease, FenceProof proof, TimePoint now) {
  expects(covers(proof, lease.id(), lease.worker()), "the proof is about this lease");
  const Revoked was = lease.state();
  return {lease.id(), lease.worker(), Fenced{was.reason, was.at, std::move(proof), now}};
}

LeaseState state_of(const AnyLease& lease) {
  constexpr LeaseState kStates[] = {LeaseState::Live, LeaseState::Revoked, LeaseState::Fenced};
  return kStates[lease.index()];
}

RevokeReason reason_of(const AnyLease& lease) {
  if (const auto* revoked = std::get_if<Lease<Revoked>>(&lease)) return revoked->state().reason;
  if (const auto* fenced = std::get_if<Lease<Fenced>>(&lease)) return fenced->state().reason;
  return RevokeReason::None;
}

LeaseId id_of(const AnyLease& lease) {
  return std::visit([](const auto& held) { return held.id(); }, lease);
}

AttachmentId worker_of(const AnyLease& lease) {
  return std::visit([](const auto& held) { return held.worker(); }, lease);
}

}  // namespace leasehold
