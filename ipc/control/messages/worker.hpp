/// Worker ↔ broker: attachment, weights, extents. The rules for all messages are in
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
#include "ipc/control/tokens/text_identity.hpp"

namespace leasehold::wire {

/// Version of the protocol between broker and workers: the meaning of their messages, and the
/// layout of the segments (kSegmentAbiVersion). A change that peers of the previous version cannot
/// ignore raises it. A new optional field, or a new method that may be answered with UnknownMethod,
/// does not.
///   1: workers that name no version.
///   2: both sides name their version.
/// A broker serves its own version and the one before. A worker needs a broker of its own version
/// or a newer one, so an upgrade begins with the broker. A change of the segments' layout is an
/// exception: it also raises kOldestWorkerProtocol.
inline constexpr std::uint32_t kWorkerProtocol = 2;
inline constexpr std::uint32_t kOldestWorkerProtocol = 1;
inline constexpr std::uint32_t kUnnamedProtocol = 1;
static_assert(kOldestWorkerProtocol + 1 >= kWorkerProtocol);

/// `worker.attach`: the first call of a worker. Reply: WorkerAttached with 3 descriptors: the lease
/// table (read-only), the worker segment (read-write), and the wakeup eventfd, which the worker
/// writes after a unit that refused a lease.
///
/// With `resume`, the same worker process returns to a restarted broker under its previous
/// attachment. The reply then has `resumed` set, the same index and key, and no descriptors. Error:
/// BrokerLost, final for this attachment, when the lease table is a new one or the grace period for
/// returning is over. Error for a worker of another version: ProtocolMismatch, final.
struct WorkerAttach : Message<WorkerAttach> {
  static constexpr std::string_view kMethod = "worker.attach";
  std::string worker;  ///< Follows the rules of TenantId.
  std::optional<AttachmentId> resume;
  std::optional<std::uint32_t> protocol;  ///< kWorkerProtocol of the worker.
  RequestId request_id;
};

struct WorkerAttached : Message<WorkerAttached> {
  WorkerId worker;          ///< Also the index of its revocation counter.
  AttachmentId attachment;  ///< For `resume` after a broker restart.
  std::uint32_t slot_count = 0;
  std::string token_key;  ///< Hex; verifies the tokens for this worker only.
  bool resumed = false;
  std::string device = "cpu";  ///< The device whose memory is leased: "cpu", "cuda:0" …
  std::string device_uuid;     ///< UUID of the card, as `nvidia-smi -L` prints it; empty for "cpu".
  std::optional<std::uint32_t> protocol;  ///< kWorkerProtocol of the broker.
};

/// `spill.open` (parameters: Empty): requests the file to which this worker may spill sealed
/// blocks, after `worker.attach`. Reply: SpillOpened with 1 descriptor: an unnamed file of that
/// size, open for reading and writing, whose space is allocated. If the broker lends no files, the
/// reply has size 0 and no descriptor. Errors: PoolExhausted when the user's share of the capacity
/// is lent, DiskFull, BadRequest and SystemError of the directory. The worker then serves without a
/// file.
struct SpillOpened : Message<SpillOpened> {
  static constexpr std::string_view kOpen = "spill.open";
  std::uint64_t size_bytes = 0;
};

/// `weights.open`: an engine lease on a model's weights or a part of them. Reply: WeightsOpened
/// with 1 descriptor: read-write when the caller must fill the region, read-only when it is already
/// published. Errors: WeightsLoading (another worker is filling it; retry), PoolExhausted (memory,
/// lease slots, or this worker's share of them).
struct WeightsOpen : Message<WeightsOpen> {
  static constexpr std::string_view kMethod = "weights.open";
  std::string model;  ///< For display, as is `part`; both follow TextRule::Label.
  std::string part;   ///< "model", a layer or a tensor; kernels/model/weights_plan.hpp.
  /// These four fields identify the file: the same file has the same weights.
  std::uint64_t file_device = 0;
  std::uint64_t file_inode = 0;
  std::uint64_t file_size_bytes = 0;
  /// The later one of its modification and its status change (ctime).
  std::int64_t file_mtime_ns = 0;
  std::string layout_digest;  ///< Hex SHA-256 of the region's layout.
  std::uint32_t layout_version = 0;
  std::uint64_t size_bytes = 0;  ///< Size of the region.
  RequestId request_id;
};

struct WeightsOpened : Message<WeightsOpened> {
  RegionId region;
  LeaseId lease;  ///< Engine scope; no TTL, ends with the worker process.
  bool published = false;
};

/// `weights.publish`: the loader has filled, unmapped and closed the region. Reply: Empty with 1
/// read-only descriptor. Errors: StillWritable (a process still has a writable mapping; retry).
struct WeightsPublish : Message<WeightsPublish> {
  static constexpr std::string_view kMethod = "weights.publish";
  RegionId region;
  RequestId request_id;
};

/// `worker.ready`: the worker accepts requests. Reply: ExtentShape.
struct WorkerReady : Message<WorkerReady> {
  static constexpr std::string_view kMethod = "worker.ready";
  static constexpr std::size_t kMaxAliases = 15;
  std::string address;  ///< Unix socket that tenants connect to.
  std::string model;    ///< The name of its model, as shown to operators and clients.
  /// Further names of the model, which `lease.acquire` accepts too. May be missing.
  std::vector<std::string> aliases;
  /// The arithmetic that its tokens depend on: "f32", "int8" or "f16", with "+f32" or "+q8_0" if
  /// the KV cache is not f16. Empty or missing: not known.
  std::string arithmetic;
  std::uint64_t kv_block_size_bytes = 0;
  std::uint32_t max_extents = 0;  ///< Most extents that it has descriptors for; 0: no limit.
  /// Identifies the meaning of KV memory: model, layout, arithmetic, format of the sequence
  /// records. A worker can adopt KV memory of another process with the same identity. Missing: this
  /// worker adopts no memory.
  std::optional<std::string> kv_identity;
  /// Missing from workers of an earlier version; `model` then identifies the model.
  std::optional<TextIdentity> text_identity;
  /// Most tokens of a text including its prompt; 0 or missing: not known.
  std::uint32_t max_context = 0;
  /// The worker handles `worker.asleep` and can restore all its engine leases. May be missing.
  bool can_sleep = false;
  RequestId request_id;
};

struct ExtentShape : Message<ExtentShape> {
  std::uint64_t extent_size_bytes = 0;  ///< 2 MiB · 2^k; equal for all extents of the pool.
  std::uint32_t blocks_per_extent = 0;
};

/// `lease.attach`: requests the lease's extents again, as a LeaseGrant. Reply: Empty.
struct LeaseAttach : Message<LeaseAttach> {
  static constexpr std::string_view kMethod = "lease.attach";
  LeaseId lease;
};

/// `lease.redeliver`: after a resume, returns the memory of a lease that the worker still maps,
/// with one descriptor per extent and at most 60 per call. The worker repeats it until all memory
/// is delivered, then calls `worker.ready`. Memory that is not redelivered counts as unmapped.
/// Reply: Empty. Errors: UntrustedSegment (not the memory that was granted), UnknownLease,
/// PermissionDenied.
struct LeaseRedeliver : Message<LeaseRedeliver> {
  static constexpr std::string_view kMethod = "lease.redeliver";
  LeaseId lease;
  std::vector<ExtentId> extents;
};

/// `lease.drained`: no request runs or waits under a draining lease, and none will be accepted. The
/// broker then ends the lease. The worker sends it once per drain, and again after a reconnect.
/// Reply: Empty, also when the lease has ended already. Errors: IllegalTransition (the lease is not
/// draining), PermissionDenied (it is on another worker), UnknownLease, StaleGeneration.
///
/// No request is lost, because the drain word never returns to zero and one thread of the worker
/// reads it for both purposes: the thread reads the word and, if it is set, looks for requests and
/// reports; before it accepts a request, it reads the word again. So the worker either counts a
/// request before it reports, or refuses the request.
struct LeaseDrained : Message<LeaseDrained> {
  static constexpr std::string_view kMethod = "lease.drained";
  LeaseId lease;
};

/// Notification `event.report`: events of a worker. The broker adds its own sequence numbers.
struct EventReport : Message<EventReport> {
  static constexpr std::string_view kMethod = "event.report";
  std::vector<std::string> events;  ///< Each is one JSON object of ipc/control/events.hpp.
};

/// Notification `worker.draining`: the worker drains and then exits. The broker grants it no new
/// tenant lease on this connection; its leases stay live. The worker sends it again after a
/// reconnect.
struct WorkerDraining : Empty {
  static constexpr std::string_view kMethod = "worker.draining";
};

/// Notification `worker.weights`: the worker cannot restore a part of its weights and computes
/// nothing, or it has all parts again. Meanwhile the broker grants no lease on the worker, and
/// revokes its leases except those on weights. After a reconnect the worker repeats the
/// notification if parts are missing or it is asleep.
struct WorkerWeights : Message<WorkerWeights> {
  static constexpr std::string_view kMethod = "worker.weights";
  /// Why a part is missing, a TextRule::Sentence. If the field is missing, all parts are there, or
  /// the worker is asleep.
  std::optional<std::string> missing;
  bool asleep = false;  ///< May be missing.
};

/// `weights.sleep`: the worker needs no weights for now. The broker puts it to sleep as for
/// `worker.sleep`. Reply: Empty; `worker.asleep` comes before it. Errors: those of `worker.sleep`.
struct WeightsSleep : Message<WeightsSleep> {
  static constexpr std::string_view kMethod = "weights.sleep";
  /// Why it sleeps again without having served, a TextRule::Sentence. Missing: it was idle.
  std::optional<std::string> why;
  RequestId request_id;
};

/// `weights.wake`: the sleeping worker needs its weights. After the reply (Empty) it may call
/// `weights.open`, which gets WeightsLoading while it is asleep. Errors: Draining (the broker
/// stops).
struct WeightsWake : Message<WeightsWake> {
  static constexpr std::string_view kMethod = "weights.wake";
  RequestId request_id;
};

// ---------------------------------------------------------------- broker → worker

/// Call `worker.ping`: checks that the worker responds. Any reply counts, even an error.
struct WorkerPing : Empty {
  static constexpr std::string_view kMethod = "worker.ping";
  static constexpr ReplyTimeout kReplyTimeout = ReplyTimeout::Kill;
};

/// Call `worker.admission`: whether tenants get new leases on this worker, and as which member of
/// its cell the host serves them. Sent when the worker is ready, when an operator drains, replaces
/// or undrains it, and when a membership begins or ends. The worker reports the first in `/health`,
/// and the second in the head of each answer. Reply: Empty.
struct WorkerAdmission : Message<WorkerAdmission> {
  static constexpr std::string_view kMethod = "worker.admission";
  static constexpr ReplyTimeout kReplyTimeout = ReplyTimeout::Call;
  bool admits = true;
  std::uint64_t incarnation = 0;  ///< See CellCeiling. May be missing.
};

/// Call `worker.asleep`: the worker sleeps or wakes from now on. Before the broker revokes the
/// engine leases of a worker that sleeps, it sends this, so that the worker does not restore them.
/// Reply: Empty.
struct WorkerAsleep : Message<WorkerAsleep> {
  static constexpr std::string_view kMethod = "worker.asleep";
  static constexpr ReplyTimeout kReplyTimeout = ReplyTimeout::Call;
  bool asleep = true;
};

/// Call `lease.grant`: a new lease, or more extents for a granted one. Carries one descriptor per
/// extent; all are of one pool. The reply (Empty) means that all of them are mapped. All but the
/// first KV memory of a tenant's lease have their pages then. An error means that none is mapped.
struct LeaseGrant : Message<LeaseGrant> {
  static constexpr std::string_view kMethod = "lease.grant";
  static constexpr ReplyTimeout kReplyTimeout = ReplyTimeout::Call;
  LeaseId lease;
  TenantId tenant;
  std::uint64_t extent_size_bytes = 0;
  std::vector<ExtentId> extents;     ///< Ids are unique over both pools.
  MemoryPool pool = MemoryPool::Kv;  ///< May be missing.
  /// May be missing. Shared: `tenant` is empty. Adapter: `tenant` is the owner; empty: shared.
  LeaseScope scope = LeaseScope::Tenant;
  /// The ended lease of the same tenant whose extents, with their bytes, are in this grant and in
  /// earlier grants of `lease`. Missing: the extents are zero, or further grants with adopted
  /// extents follow.
  std::optional<LeaseId> adopted_from;
  std::optional<ApiKeyId> api_key = std::nullopt;  ///< The API key of the acquire, if it had one.
  bool scavenger = false;                          ///< See LeaseAcquire. May be missing.
  std::optional<AdapterName> adapter = std::nullopt;  ///< Exactly with scope Adapter.
  std::uint32_t adapter_version = 0;                  ///< Of `adapter`; missing without one.
};

/// Call `prefix.fill`: computes the full blocks of a text in a mapped shared lease. After the
/// reply, sequences of all tenants may read these blocks. Reply: PrefixFilled. Errors: BadRequest
/// (no full block), PromptTooLong, PoolExhausted or OutOfBlocks (the broker lends no more),
/// QuotaBlocks, LeaseRevoked; UnknownAdapter, if the newest version is another one; those of
/// loading the adapter.
struct PrefixFill : Message<PrefixFill> {
  static constexpr std::string_view kMethod = "prefix.fill";
  static constexpr ReplyTimeout kReplyTimeout = ReplyTimeout::None;
  LeaseId lease;
  std::string text;
  std::optional<AdapterName> adapter;  ///< Computes the text; nothing: the base model.
  std::uint32_t adapter_version = 0;   ///< 0 without an adapter.
};

struct PrefixFilled : Message<PrefixFilled> {
  std::uint32_t tokens = 0;  ///< Tokens of the whole text.
  std::uint32_t blocks = 0;  ///< Full blocks, which are published.
};

/// Call `lease.draining`: the drain word of the lease is stored. An idle worker reads no words, so
/// this wakes it. Reply: Empty; `lease.drained` follows when no request is left. The broker also
/// sends this as a notification to the holder when an operator drains the lease or replaces its
/// worker, so that the holder can replace the lease.
struct LeaseDraining : Message<LeaseDraining> {
  static constexpr std::string_view kMethod = "lease.draining";
  static constexpr ReplyTimeout kReplyTimeout = ReplyTimeout::Call;
  LeaseId lease;
  /// Only to the holder: the name of the worker that replaces the lease's worker. The lease then
  /// does not drain; `lease.replace` with mode Failover moves it.
  std::optional<std::string> successor;
};

/// A worker's part of the limits of an API key.
struct KeyQuota {
  ApiKeyId key;
  std::optional<std::uint32_t> max_concurrent;  ///< Running and waiting requests; 1 … 64.
  RateParts rates;
  bool operator==(const KeyQuota&) const = default;
};

/// Call `tenant.quota`: what a tenant may use on this worker, over all its leases there, and its
/// weight among the tenants of this worker. The quota applies from the next step on and ends no
/// running request. The broker sends it before a grant that needs it, and withdraws it when the
/// tenant's last live lease there has ended. Reply: Empty.
struct TenantQuota : Message<TenantQuota> {
  static constexpr std::string_view kMethod = "tenant.quota";
  static constexpr ReplyTimeout kReplyTimeout = ReplyTimeout::Call;
  TenantId tenant;
  std::uint64_t revision = 0;        ///< Grows with every quota of this tenant; never 0.
  std::uint32_t max_concurrent = 0;  ///< Requests that run at once; 0 … 64.
  std::uint32_t max_blocks = 0;      ///< 0 … 2^20
  std::uint32_t weight = 1;          ///< 1 … 1000
  bool divided = false;              ///< Other workers serve the tenant too: report its usage.
  bool of_cell = false;  ///< The limits are those of a cell: `brokerctl cell` raises them.
  RateParts rates = {};
  /// The most blocks that one request can ever hold, independent of this worker's current share:
  /// bounded by the quota over all workers and by the memory that may be lent to the tenant.
  /// Missing: max_blocks.
  std::optional<std::uint32_t> request_blocks = std::nullopt;
  std::vector<KeyQuota> keys = {};  ///< The tenant's keys that have limits. May be missing.

  /// An undivided limit is never 0, so 0 marks a withdrawn quota.
  bool is_withdrawn() const { return !divided && max_concurrent == 0; }
};

/// Notification `tenant.usage`, worker → broker: the use of a divided quota, sent when it changes.
struct TenantUsage : Message<TenantUsage> {
  static constexpr std::string_view kMethod = "tenant.usage";
  TenantId tenant;
  /// Revision of the quota in force. More requests than it allows may still run.
  std::uint64_t revision = 0;
  std::uint32_t running = 0;   ///< 0 … 64
  std::uint32_t waiting = 0;   ///< At most 64 are reported.
  std::uint64_t admitted = 0;  ///< Requests admitted since the tenant's first lease on this worker.
};

/// Notification `tenant.served`, worker → broker: what a tenant was served since the last
/// notification, over all its leases on this worker. A busy worker sends it once a second.
struct TenantServed : Message<TenantServed> {
  static constexpr std::string_view kMethod = "tenant.served";
  TenantId tenant;
  std::uint64_t tokens = 0;             ///< Computed tokens of prompts and of generated text.
  std::uint64_t hit_blocks = 0;         ///< Blocks of the prefix cache that were used again.
  std::uint64_t hit_tokens = 0;         ///< Tokens in those blocks, which were not computed again.
  std::uint64_t evicted_blocks = 0;     ///< Blocks evicted from the prefix cache.
  std::uint64_t preemptions = 0;        ///< Preemptions of the tenant's requests.
  std::uint64_t cross_tenant_hits = 0;  ///< Uses of another tenant's blocks. More than 0 is a leak.
  std::uint32_t cached_blocks = 0;      ///< Blocks that only the prefix cache holds now.
  std::uint64_t shared_hit_blocks = 0;  ///< Blocks of published texts, used instead of computed.

  /// Adds the counts of a later notification, and takes its `cached_blocks`.
  void add(const TenantServed& later);
};

/// Call `lease.settle`: sent for device memory, once the lease is no longer Live. The reply (Empty)
/// means that the device has reported the end of the last launch that could touch memory of the
/// lease, and that no new launch begins. The reply is the fence proof for this generation of the
/// lease, so a worker that cannot be sure does not reply.
struct LeaseSettle : Message<LeaseSettle> {
  static constexpr std::string_view kMethod = "lease.settle";
  static constexpr ReplyTimeout kReplyTimeout = ReplyTimeout::Kill;
  LeaseId lease;
};

/// Call `lease.unmap`, sent after the fence. The reply (Empty) means that the worker has unmapped
/// all memory of the lease.
struct LeaseUnmap : Message<LeaseUnmap> {
  static constexpr std::string_view kMethod = "lease.unmap";
  static constexpr ReplyTimeout kReplyTimeout = ReplyTimeout::Kill;
  LeaseId lease;
};

/// Call `lease.reclaim`: asks for up to `count` unused extents of a live lease in one pool. The
/// broker asks for swap when another tenant finds no room there. Reply: ExtentsReclaimed with the
/// extents that the worker has unmapped.
struct LeaseReclaim : Message<LeaseReclaim> {
  static constexpr std::string_view kMethod = "lease.reclaim";
  static constexpr ReplyTimeout kReplyTimeout = ReplyTimeout::Call;
  LeaseId lease;
  std::uint32_t count = 1;
  MemoryPool pool = MemoryPool::Kv;  ///< May be missing.
};

struct ExtentsReclaimed : Message<ExtentsReclaimed> {
  std::vector<ExtentId> extents;
};

}  // namespace leasehold::wire
