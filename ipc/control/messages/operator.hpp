/// Operator → broker: tenants, revocation, draining, quarantine. The rules for all messages are in
/// ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "ipc/control/messages/common.hpp"
#include "ipc/control/messages/rates.hpp"

namespace leasehold::wire {

/// What a tenant may use. `tenant.list` returns it, and the journal keeps it.
struct TenantPolicy : Message<TenantPolicy> {
  TenantId tenant;
  /// Requests that run at once; 1 … 64. A tenant of a cell may have 0.
  std::uint32_t max_concurrent = 1;
  /// KV blocks over all leases of the tenant; 1 … 2^20. A tenant of a cell may have 0.
  std::uint32_t max_blocks = 1024;
  /// KV blocks kept for the tenant; 0 … max_blocks, and 0 unless the tier is Guaranteed. The
  /// reserve is in whole extents, and its bytes are fixed when the field is set.
  std::uint32_t reserved_blocks = 0;
  std::uint32_t weight = 1;  ///< 1 … 1000
  Tier tier = Tier::Standard;
  std::int64_t ttl_ms = 10'000;  ///< TTL of a lease without renewal; 100 … 86 400 000.
  /// Longest lifetime of a lease with renewals; 100 … 10^12. Empty means no limit.
  std::optional<std::int64_t> max_lifetime_ms;
  /// Revoked leases that the tenant may replace per minute; 1 … 6 000 000.
  std::uint32_t rebinds_per_minute = 600;
  std::uint32_t rebind_burst = 256;  ///< Revoked leases that it may replace at once; 1 … 2^20.
  RateLimits rates;
  /// Adapters of the tenant with a lease, counted once over all workers; 0 … kMaxAdaptersPerOwner.
  std::uint32_t max_adapters = 0;
  /// Memory of all leases of the tenant's adapters; 0 … 2^50.
  std::uint64_t max_adapter_bytes = 0;
  std::optional<std::uint32_t> uid;  ///< The only user that may act for it; empty means any user.
  /// The cell that owns the tenant: only its agent changes the policy (cell/cell.hpp), and the
  /// leases end at the ceiling. Empty: the tenant belongs to this host.
  std::optional<CellName> cell;
};

/// `tenant.admit`: creates a tenant, or changes it. The ranges are those of TenantPolicy. A missing
/// limit keeps its value; for a new tenant it gets the default of TenantPolicy. The broker sends
/// the change to workers at once. Reply: TenantPolicy, the policy now in force. Errors: BadRequest
/// for a value out of range and for reserves beyond the capacity; NoModelLoaded for a raised
/// reserve while no worker reports the size of a block; PoolExhausted while other tenants hold the
/// memory that the reserves need; PermissionDenied for a tenant of a cell; DiskFull: the change
/// took effect, but is not on disk yet; repeat the call.
struct TenantAdmit : Message<TenantAdmit> {
  static constexpr std::string_view kMethod = "tenant.admit";
  TenantId tenant;
  std::optional<std::uint32_t> max_concurrent;
  std::optional<std::uint32_t> max_blocks;
  std::optional<std::uint32_t> reserved_blocks;
  std::optional<std::uint32_t> weight;
  std::optional<Tier> tier;
  std::optional<std::int64_t> ttl_ms;
  std::optional<std::int64_t> max_lifetime_ms;
  std::optional<std::uint32_t> rebinds_per_minute;
  std::optional<std::uint32_t> rebind_burst;
  RateLimits rates;
  std::optional<std::uint32_t> max_adapters;
  std::optional<std::uint64_t> max_adapter_bytes;
  std::optional<std::uint32_t> uid;
  RequestId request_id;
};

/// `tenant.remove`: removes a tenant; later calls for it get UnknownTenant. Its live leases are
/// revoked with `policy_changed` if `revoke` is set. Reply: LeasesTouched. Errors: UnknownTenant,
/// IllegalTransition (it has live leases, and `revoke` is not set), PermissionDenied (only the
/// agent removes a tenant of a cell, if one is connected), DiskFull as in TenantAdmit.
struct TenantRemove : Message<TenantRemove> {
  static constexpr std::string_view kMethod = "tenant.remove";
  TenantId tenant;
  bool revoke = false;
  RequestId request_id;
};

/// `lease.revoke`: revokes one lease, all leases of a tenant, the engine leases on a part of the
/// weights, or all leases of an adapter and of texts published under it. Exactly one of the four is
/// given; an adapter may have its tenant beside it. Reply: LeasesTouched. Errors: UnknownLease,
/// StaleGeneration, LeaseFenced, UnknownTenant; UnknownAdapter, also if `tenant` is not its owner.
struct LeaseRevoke : Message<LeaseRevoke> {
  static constexpr std::string_view kMethod = "lease.revoke";
  std::optional<LeaseId> lease;
  std::optional<TenantId> tenant;
  /// A WeightsOpen::part, or a prefix of such names that ends before a dot: "blk.1" matches layer
  /// 1, and each of its tensors where the weights are split by tensor. 1 to 200 bytes on one line.
  std::optional<std::string> part;
  std::optional<std::string> worker;   ///< Valid only with `part`, which it limits to this worker.
  std::optional<AdapterName> adapter;  ///< Its next request loads it again.
  RequestId request_id;
};

/// `prefix.publish`: grants a worker a shared lease and makes the worker compute the full blocks of
/// a text there, for all prompts that begin with the text, whatever their tenant. With `adapter`
/// only requests under the present version of that adapter use it, and a revocation of the adapter
/// ends it. A text of a version that was replaced or removed ends with the last request that runs
/// under that version. `lease.revoke` ends any. Reply: PrefixPublished. Errors: UnknownWorker,
/// Draining; UnknownAdapter; BadRequest for an adapter that a tenant owns; PoolExhausted;
/// QuotaBlocks, when the worker's published texts have reached their limit; QueueFull while the
/// same text is computed; those of PrefixFill, after which the lease has ended. A text that the
/// caller's user has already published on the worker is not published again: the reply names its
/// lease.
struct PrefixPublish : Message<PrefixPublish> {
  static constexpr std::string_view kMethod = "prefix.publish";
  static constexpr std::size_t kMaxTextBytes = 128 << 10;  ///< Fits a line, escaped.
  std::string worker;
  std::string text;                    ///< UTF-8, 1 … kMaxTextBytes.
  std::string name;                    ///< Shown to operators; may be empty.
  std::optional<AdapterName> adapter;  ///< A shared one; nothing: the base model.
  RequestId request_id;
};

struct PrefixPublished : Message<PrefixPublished> {
  LeaseId lease;
  /// Tokens of the whole text; 0: it was published before a broker restart.
  std::uint32_t tokens = 0;
  std::uint32_t blocks = 0;  ///< Full blocks, which are published.
};

/// `lease.drain`: the leases accept no new requests from now on. Accepted ones finish, and may grow
/// within the quota. A lease ends with the reason `released` when its last request has ended, or
/// with `drain_deadline` after `grace_ms`. Exactly one of lease, tenant and worker is given. A
/// drained tenant or worker also gets no new lease (Draining) until `lease.undrain`; a new worker
/// process of the same name serves again. Reply: LeasesTouched. Errors: UnknownLease,
/// StaleGeneration, LeaseFenced, UnknownTenant, UnknownWorker; BrokerLost while the worker
/// reconnects after a broker restart; BadRequest for an engine lease, which has no requests;
/// DiskFull as in TenantAdmit.
struct LeaseDrain : Message<LeaseDrain> {
  static constexpr std::string_view kMethod = "lease.drain";
  std::optional<LeaseId> lease;
  std::optional<TenantId> tenant;
  std::optional<std::string> worker;
  std::int64_t grace_ms = 30'000;  ///< 0 … 86 400 000
  RequestId request_id;
};

/// `lease.undrain`: the tenant or the worker gets new leases again, and the worker is no longer
/// replaced. Leases that drain keep draining. Exactly one is given. Reply: Empty. Errors:
/// UnknownTenant, UnknownWorker; BrokerLost as for `lease.drain`; DiskFull as in TenantAdmit.
struct LeaseUndrain : Message<LeaseUndrain> {
  static constexpr std::string_view kMethod = "lease.undrain";
  std::optional<TenantId> tenant;
  std::optional<std::string> worker;
  RequestId request_id;
};

/// `worker.replace`: from now on tenants get leases on worker `by` instead of `worker`. Each holder
/// on `worker` gets `lease.draining` and answers with `lease.replace`, which moves its lease;
/// leases left after `grace_ms` are revoked with `worker_replaced`. The replacement is cancelled
/// when `by` ends, by `lease.undrain`, and by a broker restart: `worker` then serves as before. A
/// repeated call notifies the holders again and sets a new grace period. Reply: LeasesTouched.
/// Errors: UnknownWorker; NoModelLoaded, Draining, BrokerLost for `by`; BadRequest when the context
/// of `by` is smaller, or its block size or text identity differs (with `any_arithmetic` only the
/// identity's content must be equal); IllegalTransition when another worker replaces `worker`, or
/// one of the two is part of another replacement; DiskFull as in TenantAdmit.
struct WorkerReplace : Message<WorkerReplace> {
  static constexpr std::string_view kMethod = "worker.replace";
  std::string worker;
  std::string by;
  std::int64_t grace_ms = 30'000;  ///< 0 … 86 400 000
  bool any_arithmetic = false;     ///< May be missing.
  RequestId request_id;
};

/// `worker.sleep`: revokes the worker's engine leases with `worker_asleep` and frees the memory of
/// weights that no other worker uses. Its other leases stay live; its requests wait. The worker
/// wakes at `worker.wake`, at the next request that it accepts, and when a lease with waiting
/// requests is drained. Reply: LeasesTouched, without leases if the worker is asleep already.
/// Errors: UnknownWorker, BrokerLost as for `lease.drain`; NoModelLoaded while it loads its
/// weights; MissingWeight while it cannot restore them; Draining while it stops, or is drained or
/// replaced and has leases of tenants; BadRequest if it cannot sleep (WorkerReady::can_sleep).
struct WorkerSleep : Message<WorkerSleep> {
  static constexpr std::string_view kMethod = "worker.sleep";
  std::string worker;
  RequestId request_id;
};

/// `worker.wake`: the worker restores its weights. Reply: Empty, at once and also if it is awake;
/// WorkerView::drain is "waking" until it has them. If there is no room for them, it falls asleep
/// again; the event `worker_service` says why. Errors: UnknownWorker, BrokerLost as for
/// `lease.drain`.
struct WorkerWake : Message<WorkerWake> {
  static constexpr std::string_view kMethod = "worker.wake";
  std::string worker;
  RequestId request_id;
};

/// `extent.open`: opens leased memory for a memory check. Reply: Empty with 1 read-only descriptor.
/// Errors: PermissionDenied unless the broker runs with --allow-memory-check; UnknownLease when the
/// extent has no memory object.
struct ExtentOpen : Message<ExtentOpen> {
  static constexpr std::string_view kMethod = "extent.open";
  ExtentId extent;
};

/// `quarantine.release`: returns quarantined memory to the pool. Exactly one of extent and region
/// is given. The broker grants it only when the object is empty after another hole punch, or when
/// its last worker has exited. Reply: QuarantineReleased. Errors: IllegalTransition (not
/// quarantined, or already being cleared), StillWritable (its worker still writes to it),
/// UnknownLease (no such object), DiskFull (the memory is free, but that is not on disk yet).
struct QuarantineRelease : Message<QuarantineRelease> {
  static constexpr std::string_view kMethod = "quarantine.release";
  std::optional<ExtentId> extent;
  std::optional<RegionId> region;
  std::string reason;  ///< For the operator action log; 1 to 200 bytes on one line.
  RequestId request_id;
};

struct QuarantineReleased : Message<QuarantineReleased> {
  std::uint64_t size_bytes = 0;  ///< Returned to the pool.
};

struct LeasesTouched : Message<LeasesTouched> {
  std::vector<LeaseId> leases;
};

// Lists.
//
// `status` and `worker.list` take no parameters. They return one view, and {"items": [view, …]}.
// `operator_action.list` takes {"limit": <n ≤ 1000>} and returns the newest actions first. A broker
// without a state directory answers it with BadRequest.
//
// The other lists come in pages of at least one item. A page ends at the limit, or when the line is
// full. `lease.list` and `event.list` take {"after": <slot or sequence>, "limit": <n ≤ 1000>};
// `tenant.list`, `key.list` (keys.hpp), `extent.list` and `quarantine.list` take the messages
// below. The reply is {"items": [view or event, …]}. "more" says whether items follow; `event.list`
// instead returns "newest", the sequence of the last event. Sequences that are left out belong to
// lost events. `lease.list` and `extent.list` also return "total": the number of all leases that
// are not closed or of all extents in use, whatever the page shows.
//
// `metrics.read` takes no parameters and returns counts since the broker started, for
// leasehold-monitor:
// {"first_power": 10, "revocations": {<reason>: <count>, …}, "clocks": {<clock>: histogram, …},
// "rebinds": {<mode>: histogram, …}}. A histogram is {"below": [<count>, …], "count", "sum_ns"};
// element i of "below" counts the values below 2^(first_power + i) ns.

/// `tenant.list`: tenants in the order of their names.
struct TenantList : Message<TenantList> {
  static constexpr std::string_view kMethod = "tenant.list";
  std::optional<TenantId> tenant;  ///< Only this one, if it exists.
  std::optional<TenantId> after;
  std::uint32_t limit = 1000;  ///< 0 … 1000; a missing field means 1000.
};

/// `extent.list`: extents in the order of their ids.
struct ExtentList : Message<ExtentList> {
  static constexpr std::string_view kMethod = "extent.list";
  std::optional<ExtentId> after;
  std::uint32_t limit = 1000;  ///< See TenantList.
};

/// `quarantine.list`: quarantined extents in the order of their ids, then regions. At most one of
/// `after_extent` and `after_region` is given: the last item of the previous page.
struct QuarantineList : Message<QuarantineList> {
  static constexpr std::string_view kMethod = "quarantine.list";
  std::optional<ExtentId> after_extent;
  std::optional<RegionId> after_region;
  std::uint32_t limit = 1000;  ///< See TenantList.
};

}  // namespace leasehold::wire
