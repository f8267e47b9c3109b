/// A lease and its transitions: Live ──revoke(reason)──► Revoked ──fence(proof)──► Fenced.
///
/// The states are types, so no other transition compiles. The functions are pure; broker/decide/
/// decides what follows for the lease word, the revocation counter and the memory.
#pragma once

#include <concepts>
#include <utility>
#include <variant>

#include "broker/books/fence_proof.hpp"
#include "common/clock.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold {

struct Live {};

struct Revoked {
  RevokeReason reason;
  TimePoint at;
};

struct Fenced {
  RevokeReason reason;
  TimePoint revoked_at;
  FenceProof proof;
  TimePoint at;
};

template <class State>
class Lease;

/// Opens a lease. Its id and worker never change. Precondition: the generation is new and not 0.
Lease<Live> open_lease(LeaseId id, AttachmentId worker);

/// Precondition: reason is not None.
Lease<Revoked> revoke(Lease<Live>&& lease, RevokeReason reason, TimePoint now);

/// Precondition: the proof covers this lease.
Lease<Fenced> fence(Lease<Revoked>&& lease, FenceProof proof, TimePoint now);

/// Ownership: move-only; one object per (slot, generation).
template <class State>
class Lease {
 public:
  Lease(Lease&&) noexcept = default;
  Lease& operator=(Lease&&) noexcept = default;

  LeaseId id() const { return id_; }
  AttachmentId worker() const { return worker_; }
  const State& state() const { return state_; }

 private:
  friend Lease<Live> open_lease(LeaseId, AttachmentId);
  friend Lease<Revoked> revoke(Lease<Live>&&, RevokeReason, TimePoint);
  friend Lease<Fenced> fence(Lease<Revoked>&&, FenceProof, TimePoint);
  Lease(LeaseId id, AttachmentId worker, State state)
      : id_(id), worker_(worker), state_(std::move(state)) {}

  LeaseId id_;
  AttachmentId worker_;
  State state_;
};

template <class L>
concept Revocable =
    requires(L lease) { revoke(std::move(lease), RevokeReason::Operator, TimePoint{}); };

template <class L>
concept Fenceable =
    requires(L lease, FenceProof proof) { fence(std::move(lease), std::move(proof), TimePoint{}); };

// A Live lease cannot be fenced directly.
static_assert(Revocable<Lease<Live>> && !Fenceable<Lease<Live>>);
static_assert(Fenceable<Lease<Revoked>> && !Revocable<Lease<Revoked>>);
static_assert(!Revocable<Lease<Fenced>> && !Fenceable<Lease<Fenced>>);  // Fenced is final
static_assert(!std::copyable<Lease<Live>>);

/// A lease in any state.
using AnyLease = std::variant<Lease<Live>, Lease<Revoked>, Lease<Fenced>>;

LeaseState state_of(const AnyLease& lease);
RevokeReason reason_of(const AnyLease& lease);
LeaseId id_of(const AnyLease& lease);
AttachmentId worker_of(const AnyLease& lease);

}  // namespace leasehold
