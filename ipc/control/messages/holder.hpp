/// Holder → broker: calls that acquire, keep, query and resize a lease, and the notice of its end.
/// The rules for all messages are in ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/ids.hpp"
#include "ipc/control/messages/common.hpp"
#include "ipc/control/tokens/text_identity.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold::wire {

/// `lease.acquire`: KV memory for a tenant on a worker. Reply: LeaseAcquired.
/// The holder is the calling process, identified by its socket and its pidfd. The broker revokes
/// the lease when either of them ends.
///
/// Without `worker`, the broker takes the ready worker with the fewest leases among those that
/// serve `model`, have the `text_identity` and can hold `min_context` tokens. A named worker must
/// meet the same conditions. A call that names neither model nor worker, and that replaces no
/// lease, is refused while ready workers serve several models.
///
/// If no worker serves the model, the error lists the models that are served: UnknownWorker, or
/// NoModelLoaded while a worker that serves the model may come back. MissingWeight: the only worker
/// that serves the model has lost its weights.
///
/// Errors: BadRequest (`ttl_ms` below 0, a demand beyond the capacity, several models),
/// UnknownTenant (also for a tenant whose policy names another user), BadToken (`api_key`),
/// UnknownLease (`replaces` was never granted, or belongs to another tenant), UnknownWorker,
/// NoModelLoaded. Also MissingWeight, Draining, BrokerLost (retry), QuotaBlocks, PoolExhausted,
/// RebindRateLimited, DiskFull, RequestIdConflict; LeaseRevoked, LeaseFenced, StaleGeneration for a
/// lease that ended before the reply, or before a repeated call; those of the worker that maps the
/// memory. Some errors have `retry_after_ms`.
struct LeaseAcquire : Message<LeaseAcquire> {
  static constexpr std::string_view kMethod = "lease.acquire";
  TenantId tenant;
  std::uint32_t blocks = 0;  ///< KV blocks wanted at once; 0 means the blocks of one extent.
  std::int64_t ttl_ms = 0;   ///< At most the tenant's TTL; 0 means the tenant's TTL.
  std::optional<std::string> worker;  ///< Name of the worker; empty means any ready worker.
  /// The model for a new text; empty means the model that every ready worker serves. A lease that
  /// replaces another one is on a worker with the same model content, unless this field names a
  /// model.
  std::optional<ModelName> model;
  /// The identity of the lease under which the text began; the worker must have the same.
  std::optional<TextIdentity> text_identity;
  /// Tokens that prompt and text need; 0 means any context. May be missing.
  std::uint32_t min_context = 0;
  std::optional<LeaseId> replaces;  ///< For a rebind: the lease that this one replaces.
  /// A key of the tenant, with which any user may act for it. The lease ends when the key is
  /// revoked. An unknown key gets BadToken. A batch key (ipc/control/tokens/api_key.hpp) serves
  /// only a worker that acquires a scavenger lease on itself.
  std::optional<std::string> api_key;
  /// The lease counts as one of a scavenger, whatever the tenant's tier: its memory is reclaimed
  /// for the reserves of guaranteed tenants and for the tenant's own quota, and its requests run
  /// after all others. May be missing.
  bool scavenger = false;
  RequestId request_id;
};

struct LeaseAcquired : Message<LeaseAcquired> {
  LeaseId lease;
  /// The holder presents it to the worker; see ipc/control/tokens/lease_token.hpp.
  std::string token;
  std::string address;     ///< The worker's Unix socket.
  std::string worker;      ///< The worker's name.
  std::string arithmetic;  ///< See WorkerReady.
  /// See WorkerReady. A text continues unchanged under a lease with an equal identity. Missing: not
  /// known.
  std::optional<TextIdentity> text_identity;
  std::uint32_t max_context = 0;  ///< See WorkerReady.
  std::int64_t deadline_boottime_ns = 0;
  std::int64_t ttl_ms = 0;   ///< The holder renews the lease every third of it.
  std::uint32_t blocks = 0;  ///< KV blocks that fit into the granted extents.
  /// How many of `blocks` hold the bytes of the replaced lease. May be missing.
  std::uint32_t adopted_blocks = 0;
  /// Latest deadline that renewals can reach; 0 means no limit. May be missing.
  std::int64_t last_deadline_boottime_ns = 0;
};

/// `lease.replace`: a second lease of the same tenant, worker and size, granted while the holder's
/// lease is live, so that its requests can move to the new one (`request.move`). Until the old
/// lease ends, its blocks do not count against the quota, but both leases need memory. After the
/// grant the old lease drains: it ends once it has no more requests, at the latest two seconds
/// later. Costs one rebind (RebindRateLimited). Reply: LeaseAcquired.
/// Errors: as for `lease.acquire`; UnknownLease (this connection does not hold the lease),
/// LeaseRevoked, LeaseFenced, IllegalTransition (the lease was replaced before), Draining (its
/// memory is reclaimed), and RebindRateLimited while the lease that it replaced is not fenced.
///
/// With mode Failover the new lease is on the worker that replaces the old lease's worker. Once the
/// new worker has mapped its first memory, the broker revokes the old lease (`worker_replaced`, no
/// notice to the holder) and hands over its memory with its contents before the reply. If the two
/// workers cannot share KV memory, the reply has no `adopted_blocks`. The holder then submits the
/// request again. IllegalTransition, after which the lease stays live: the worker is not being
/// replaced, or the text identities of the workers differ; with `any_arithmetic` only the content
/// must be equal.
struct LeaseReplace : Message<LeaseReplace> {
  static constexpr std::string_view kMethod = "lease.replace";
  LeaseId lease;
  /// A mode that is a move. Modes other than Failover only differ in events.
  RebindMode mode = RebindMode::Preemptive;
  bool any_arithmetic = false;  ///< Valid only with Failover. May be missing.
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
