/// Holder → broker: acquires, keeps, queries and resizes a lease; the notice of its end. The rules
/// for all messages are in ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/ids.hpp"
#include "ipc/control/messages_common.hpp"
#include "ipc/control/text_identity.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold::wire {

/// `lease.acquire`: KV memory for a tenant on a worker. Reply: LeaseAcquired.
/// The holder is the calling process, identified by its socket and its pidfd. The broker revokes
/// the lease when either of them ends.
///
/// Without `worker`, it is the ready worker with the fewest leases among those that serve `model`,
/// compute like `text_identity` and hold `min_context` tokens. A named worker must do so, too. A
/// call that names neither model nor worker, and that replaces no lease, is refused while ready
/// workers serve several models.
///
/// Where none serves it, the refusal says what is served: UnknownWorker, or NoModelLoaded while a
/// worker that serves it may come back. MissingWeight: the only worker that serves it has lost its
/// weights.
///
/// Errors: BadRequest (`ttl_ms` below 0, a demand beyond the capacity, several models),
/// UnknownTenant (also for one whose policy names another user), BadToken (`api_key`), UnknownLease
/// (`replaces` was never granted, or is another tenant's), UnknownWorker, NoModelLoaded. Also
/// MissingWeight, Draining, BrokerLost (retry), QuotaBlocks, PoolExhausted, RebindRateLimited,
/// DiskFull, RequestIdConflict; LeaseRevoked, LeaseFenced, StaleGeneration for a lease that ended
/// before the reply, or before a repeated call; those of the worker that maps the memory. Some have
/// `retry_after_ms`.
struct LeaseAcquire : Message<LeaseAcquire> {
  static constexpr std::string_view kMethod = "lease.acquire";
  TenantId tenant;
  std::uint32_t blocks = 0;           ///< KV blocks wanted at once; 0 means one extent's worth.
  std::int64_t ttl_ms = 0;            ///< At most the tenant's TTL; 0 means the tenant's TTL.
  std::optional<std::string> worker;  ///< Name of the worker; empty means any ready worker.
  /// What a new text is generated with; empty: what every ready worker serves. A lease that
  /// replaces another one is on a worker of the same content, unless this names it.
  std::optional<ModelName> model;
  /// Of the lease that a text began under and continues from: exactly this one.
  std::optional<TextIdentity> text_identity;
  std::uint32_t min_context = 0;    ///< Tokens that prompt and text need; 0: any. May be missing.
  std::optional<LeaseId> replaces;  ///< For a rebind: the lease that this one replaces.
  /// Of the tenant: any user may act for it with one. The lease ends with the key. BadToken for a
  /// key that is not known.
  std::optional<std::string> api_key;
  RequestId request_id;
};

struct LeaseAcquired : Message<LeaseAcquired> {
  LeaseId lease;
  std::string token;       ///< To present to the worker; see ipc/control/lease_token.hpp.
  std::string address;     ///< The worker's Unix socket.
  std::string worker;      ///< The worker's name.
  std::string arithmetic;  ///< As in WorkerReady.
  /// As in WorkerReady: a text continues exactly under an equal one. Missing: not known.
  std::optional<TextIdentity> text_identity;
  std::uint32_t max_context = 0;  ///< As in WorkerReady.
  std::int64_t deadline_boottime_ns = 0;
  std::int64_t ttl_ms = 0;   ///< Renew every third of it.
  std::uint32_t blocks = 0;  ///< KV blocks that fit into the granted extents.
  /// Of these, with the bytes of the replaced lease. May be missing.
  std::uint32_t adopted_blocks = 0;
  /// No renewal reaches beyond it; 0 means no limit. May be missing.
  std::int64_t last_deadline_boottime_ns = 0;
};

/// `lease.replace`: a second lease of the same tenant, worker and size, granted while the holder's
/// lease is live, so that its requests move there (`request.move`). Until the old lease ends, its
/// blocks do not count against the quota, but both need memory. From the grant on the old one
/// drains: it ends once no request is left under it, at the latest two seconds later. Costs one
/// rebind (RebindRateLimited). Reply: LeaseAcquired.
/// Errors: as for `lease.acquire`; UnknownLease (this connection does not hold it), LeaseRevoked,
/// LeaseFenced, IllegalTransition (it was replaced before), Draining (its memory is reclaimed), and
/// RebindRateLimited while the lease that it replaced itself is not fenced.
///
/// With mode Failover the new lease is on the worker that replaces the old one's. Once that worker
/// has mapped its first memory, the broker revokes the old lease (`worker_replaced`, no notice to
/// the holder) and hands its memory over, bytes included, before it replies. Where the two workers
/// cannot share KV memory, the reply says so with no `adopted_blocks`. The request is then
/// submitted again. IllegalTransition: the worker is not being replaced, or the other one's text
/// identity differs; with `any_arithmetic` only its content counts. The lease goes on.
struct LeaseReplace : Message<LeaseReplace> {
  static constexpr std::string_view kMethod = "lease.replace";
  LeaseId lease;
  RebindMode mode = RebindMode::Preemptive;  ///< A move. Those but Failover: for events only.
  bool any_arithmetic = false;               ///< With Failover. May be missing.
  RequestId request_id;
};

/// `lease.renew`: restarts the TTL. Reply: LeaseRenewed. Errors: UnknownLease (this connection does
/// not hold it), LeaseRevoked, LeaseFenced.
struct LeaseRenew : Message<LeaseRenew> {
  static constexpr std::string_view kMethod = "lease.renew";
  LeaseId lease;
  RequestId request_id;
};

struct LeaseRenewed : Message<LeaseRenewed> {
  std::int64_t deadline_boottime_ns = 0;
};

/// `lease.hold`: after a broker restart, the holder claims its lease on a new connection. The
/// caller is the holder from then on. Reply: LeaseRenewed with the current, unchanged deadline.
/// Errors: BadToken, also for a lease that was never granted or whose slot is in use by another
/// one; with the lease's token PermissionDenied (another user, or another connection holds it),
/// LeaseRevoked, LeaseFenced.
struct LeaseHold : Message<LeaseHold> {
  static constexpr std::string_view kMethod = "lease.hold";
  LeaseId lease;
  std::string token;
  RequestId request_id;
};

/// `lease.release`: the holder gives up the lease. The broker replies (Empty) once the lease is
/// revoked; the fence follows without another call. For a lease that is revoked already the reply
/// is Empty, too. Errors: UnknownLease (this connection does not hold it), LeaseFenced.
struct LeaseRelease : Message<LeaseRelease> {
  static constexpr std::string_view kMethod = "lease.release";
  LeaseId lease;
  RequestId request_id;
};

/// `lease.query`: what the lease is now. Its holder may ask, and so may operators. Reply:
/// LeaseStatus. Errors: UnknownLease; an operator also gets StaleGeneration. Other callers get
/// the same answer for a lease of another holder and for one that was never granted, here and from
/// the other calls about a lease.
struct LeaseQuery : Message<LeaseQuery> {
  static constexpr std::string_view kMethod = "lease.query";
  LeaseId lease;
};

struct LeaseStatus : Message<LeaseStatus> {
  LeaseId lease;
  LeaseScope scope = LeaseScope::Tenant;
  LeaseState state = LeaseState::Live;
  RevokeReason reason = RevokeReason::None;
  std::int64_t deadline_boottime_ns = 0;        ///< 0 means none.
  std::int64_t drain_deadline_boottime_ns = 0;  ///< 0 means not draining.
  std::uint32_t blocks = 0;                     ///< Charged to the tenant; 0 once fenced.
};

/// `lease.revoked`, a notification to the holder: the broker took the lease. Sent after the words
/// are stored, and never for a lease that the holder itself released.
struct LeaseRevoked : Message<LeaseRevoked> {
  static constexpr std::string_view kMethod = "lease.revoked";
  LeaseId lease;
  LeaseScope scope = LeaseScope::Tenant;
  RevokeReason reason = RevokeReason::None;
};

/// `lease.grow`: adds extents. The holder may call it, and so may the worker that the lease is on.
/// Only the worker may grow in swap, where `max_blocks` does not count; the bound is the tenant's
/// fair share of the swap capacity. Reply: LeaseResized of the pool, once the worker has mapped
/// them. Errors: PoolExhausted, QuotaBlocks, UnknownLease (the caller does not hold it),
/// PermissionDenied (swap; to a worker, for a lease that is not on it), LeaseRevoked, LeaseFenced.
struct LeaseGrow : Message<LeaseGrow> {
  static constexpr std::string_view kMethod = "lease.grow";
  LeaseId lease;
  std::uint32_t extents = 1;         ///< 1 … 1024
  MemoryPool pool = MemoryPool::Kv;  ///< May be missing.
  RequestId request_id;
};

/// `lease.shrink`: returns up to `extents` unused KV extents. The same callers. Reply:
/// LeaseResized. Errors: BadRequest (`extents` out of range, or the lease is not mapped yet),
/// UnknownLease and PermissionDenied as for `lease.grow`, LeaseRevoked, LeaseFenced, BrokerLost
/// while the worker reconnects after a broker restart, those of the worker that is asked.
struct LeaseShrink : Message<LeaseShrink> {
  static constexpr std::string_view kMethod = "lease.shrink";
  LeaseId lease;
  std::uint32_t extents = 1;  ///< 1 … 1024
  RequestId request_id;
};

/// What the lease holds in one pool after the call. Swap blocks are not charged.
struct LeaseResized : Message<LeaseResized> {
  std::uint32_t extents = 0;
  std::uint32_t blocks = 0;
};

}  // namespace leasehold::wire
