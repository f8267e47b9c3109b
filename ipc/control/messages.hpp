/// Everything broker, workers, tenants and operators say to each other, in one place.
///
/// Each message is a struct with its method name, `to_json()` and `from_json()`. `from_json` treats
/// its argument as input: a missing field, a wrong type or a value out of range is BadRequest
/// naming the field; unknown fields are ignored. Names in JSON are the member names. Ids travel as
/// text
/// ("17.4"), times as boot-time nanoseconds, durations as milliseconds with the unit in the name.
///
/// Every call that changes something carries `request_id`; the same id with the same parameters
/// gives the same answer, with other parameters RequestIdConflict.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "ipc/lease_word.hpp"

namespace leasehold::wire {

using Json = nlohmann::json;

/// What a lease covers: an engine's weights on one worker, or one tenant's KV on one worker.
enum class LeaseScope : std::uint8_t { Engine, Tenant };
std::string_view name(LeaseScope scope);  ///< "engine", "tenant"

/// Who is a victim first when memory is short; stored today, used by later policy.
enum class Tier : std::uint8_t { Guaranteed, Standard, Scavenger };
std::string_view name(Tier tier);  ///< "guaranteed", "standard", "scavenger"

struct Empty {
  Json to_json() const;
  static Result<Empty> from_json(const Json& json);
};

// ---------------------------------------------------------------- operator → broker

/// `tenant.admit`: creates or changes a tenant. Reply: Empty.
struct TenantAdmit {
  static constexpr std::string_view kMethod = "tenant.admit";
  TenantId tenant;
  std::uint32_t max_concurrent = 1;  ///< Requests running at once, 1 … 64.
  std::uint32_t max_blocks = 1024;   ///< KV blocks over all its leases, 1 … 2^20.
  std::uint32_t weight = 1;          ///< 1 … 1000.
  Tier tier = Tier::Standard;
  std::int64_t ttl_ms = 10'000;      ///< 100 … 86 400 000; of a lease without renewal.
  std::optional<std::uint32_t> uid;  ///< Only this user may act for it; none: any.
  RequestId request_id;
  Json to_json() const;
  static Result<TenantAdmit> from_json(const Json& json);
};

/// `lease.revoke`: one lease, or all of a tenant. Exactly one of the two. Reply: LeasesTouched.
struct LeaseRevoke {
  static constexpr std::string_view kMethod = "lease.revoke";
  std::optional<LeaseId> lease;
  std::optional<TenantId> tenant;
  RequestId request_id;
  Json to_json() const;
  static Result<LeaseRevoke> from_json(const Json& json);
};

/// `lease.drain`: no new work from now on, revoked (`drain_deadline`) after `grace_ms`.
/// Reply: LeasesTouched.
struct LeaseDrain {
  static constexpr std::string_view kMethod = "lease.drain";
  std::optional<LeaseId> lease;
  std::optional<TenantId> tenant;
  std::int64_t grace_ms = 30'000;  ///< 0 … 86 400 000
  RequestId request_id;
  Json to_json() const;
  static Result<LeaseDrain> from_json(const Json& json);
};

struct LeasesTouched {
  std::vector<LeaseId> leases;
  Json to_json() const;
  static Result<LeasesTouched> from_json(const Json& json);
};

// Lists: `status`, `tenant.list`, `lease.list`, `extent.list`, `worker.list` take no parameters and
// answer `{"items": [...]}` (`status`: one object) of the views at the end of this file.
// `event.list` takes {"after": <sequence>, "limit": <n ≤ 1000>} and answers {"items": [event, …]}.

// ---------------------------------------------------------------- holder → broker

/// `lease.acquire`: KV memory for a tenant on a worker. Reply: LeaseAcquired.
/// The holder is the calling process: its socket and its pidfd. Either one gone revokes the lease.
struct LeaseAcquire {
  static constexpr std::string_view kMethod = "lease.acquire";
  TenantId tenant;
  std::uint32_t blocks = 0;           ///< Wanted from the start; 0: one extent's worth.
  std::int64_t ttl_ms = 0;            ///< 0: the tenant's. Never longer than the tenant's.
  std::optional<std::string> worker;  ///< By name; none: any ready worker.
  std::optional<LeaseId> replaces;    ///< The lease this one takes over from (rebind).
  RequestId request_id;
  Json to_json() const;
  static Result<LeaseAcquire> from_json(const Json& json);
};

struct LeaseAcquired {
  LeaseId lease;
  std::string token;    ///< Shown to the worker; ipc/control/lease_token.hpp.
  std::string address;  ///< The worker's Unix socket.
  std::string worker;   ///< Its name.
  std::int64_t deadline_boottime_ns = 0;
  std::int64_t ttl_ms = 0;   ///< Renew at a third of it.
  std::uint32_t blocks = 0;  ///< KV blocks the granted extents hold.
  Json to_json() const;
  static Result<LeaseAcquired> from_json(const Json& json);
};

/// `lease.renew`: the TTL starts again. Reply: LeaseRenewed.
struct LeaseRenew {
  static constexpr std::string_view kMethod = "lease.renew";
  LeaseId lease;
  RequestId request_id;
  Json to_json() const;
  static Result<LeaseRenew> from_json(const Json& json);
};

struct LeaseRenewed {
  std::int64_t deadline_boottime_ns = 0;
  Json to_json() const;
  static Result<LeaseRenewed> from_json(const Json& json);
};

/// `lease.release`: the holder is done. Reply: Empty, once revoked; fencing follows by itself.
struct LeaseRelease {
  static constexpr std::string_view kMethod = "lease.release";
  LeaseId lease;
  RequestId request_id;
  Json to_json() const;
  static Result<LeaseRelease> from_json(const Json& json);
};

/// `lease.grow`: more extents, by the holder or the worker it lies on. Reply: LeaseResized, once
/// the worker has mapped them. Errors: PoolExhausted, QuotaBlocks, LeaseRevoked, LeaseFenced.
struct LeaseGrow {
  static constexpr std::string_view kMethod = "lease.grow";
  LeaseId lease;
  std::uint32_t extents = 1;  ///< 1 … 1024
  RequestId request_id;
  Json to_json() const;
  static Result<LeaseGrow> from_json(const Json& json);
};

/// `lease.shrink`: gives up to `extents` unused extents back. Reply: LeaseResized.
struct LeaseShrink {
  static constexpr std::string_view kMethod = "lease.shrink";
  LeaseId lease;
  std::uint32_t extents = 1;
  RequestId request_id;
  Json to_json() const;
  static Result<LeaseShrink> from_json(const Json& json);
};

struct LeaseResized {
  std::uint32_t extents = 0;  ///< Now held.
  std::uint32_t blocks = 0;
  Json to_json() const;
  static Result<LeaseResized> from_json(const Json& json);
};

// ---------------------------------------------------------------- worker → broker

/// `worker.attach`: first call of a worker. Reply: WorkerAttached with 3 descriptors: lease table
/// (read-only), worker line (read-write), an eventfd to ring after a unit that refused something.
struct WorkerAttach {
  static constexpr std::string_view kMethod = "worker.attach";
  std::string worker;  ///< A name, by the rules of TenantId.
  RequestId request_id;
  Json to_json() const;
  static Result<WorkerAttach> from_json(const Json& json);
};

struct WorkerAttached {
  WorkerId worker;  ///< Index of this worker's revocation counter.
  std::uint32_t slot_count = 0;
  std::string token_key;  ///< Hex; checks tokens meant for this worker only.
  Json to_json() const;
  static Result<WorkerAttached> from_json(const Json& json);
};

/// `weights.open`: an engine lease on a model's weights. Reply: WeightsOpened with 1 descriptor:
/// read-write when the caller must fill the region, read-only when it is published already.
/// Errors: WeightsLoading (somebody else fills it; retry), PoolExhausted.
struct WeightsOpen {
  static constexpr std::string_view kMethod = "weights.open";
  std::string model;              ///< For people.
  std::uint64_t file_device = 0;  ///< The file's identity: same file, same weights.
  std::uint64_t file_inode = 0;
  std::uint64_t file_size_bytes = 0;
  std::int64_t file_mtime_ns = 0;
  std::string layout_digest;  ///< Hex SHA-256 of the region's layout.
  std::uint32_t layout_version = 0;
  std::uint64_t size_bytes = 0;  ///< Of the region.
  RequestId request_id;
  Json to_json() const;
  static Result<WeightsOpen> from_json(const Json& json);
};

struct WeightsOpened {
  RegionId region;
  LeaseId lease;  ///< Engine scope; no TTL, ends with the worker.
  bool published = false;
  Json to_json() const;
  static Result<WeightsOpened> from_json(const Json& json);
};

/// `weights.publish`: filled, unmapped and closed by the loader. Reply: Empty with 1 read-only
/// descriptor. Errors: StillWritable (a writable mapping is left somewhere; retry).
struct WeightsPublish {
  static constexpr std::string_view kMethod = "weights.publish";
  RegionId region;
  RequestId request_id;
  Json to_json() const;
  static Result<WeightsPublish> from_json(const Json& json);
};

/// `worker.ready`: the worker serves. Reply: ExtentShape.
struct WorkerReady {
  static constexpr std::string_view kMethod = "worker.ready";
  std::string address;  ///< Unix socket where tenants submit.
  std::string model;
  std::uint64_t kv_block_size_bytes = 0;
  RequestId request_id;
  Json to_json() const;
  static Result<WorkerReady> from_json(const Json& json);
};

struct ExtentShape {
  std::uint64_t extent_size_bytes = 0;  ///< 2 MiB · 2^k, one size for the pool.
  std::uint32_t blocks_per_extent = 0;
  Json to_json() const;
  static Result<ExtentShape> from_json(const Json& json);
};

/// `lease.attach`: deliver this lease's extents again (as a LeaseGrant). Reply: Empty.
struct LeaseAttach {
  static constexpr std::string_view kMethod = "lease.attach";
  LeaseId lease;
  Json to_json() const;
  static Result<LeaseAttach> from_json(const Json& json);
};

/// Notification `event.report`: what a worker saw; the broker stamps its own sequence on it.
struct EventReport {
  static constexpr std::string_view kMethod = "event.report";
  std::vector<std::string> events;  ///< Each one JSON object of ipc/control/events.hpp.
  Json to_json() const;
  static Result<EventReport> from_json(const Json& json);
};

// ---------------------------------------------------------------- broker → worker

/// Call `lease.grant`: a new lease, or more extents for one already granted. Carries one descriptor
/// per extent. The reply (Empty) says that all are mapped and prefaulted; an error says that none
/// is.
struct LeaseGrant {
  static constexpr std::string_view kMethod = "lease.grant";
  LeaseId lease;
  TenantId tenant;
  std::uint32_t max_concurrent = 1;
  std::uint32_t max_blocks = 0;  ///< Ceiling for this lease.
  std::uint64_t extent_size_bytes = 0;
  std::vector<ExtentId> extents;
  Json to_json() const;
  static Result<LeaseGrant> from_json(const Json& json);
};

/// Call `lease.unmap`: after the fence. The reply (Empty) says that nothing of the lease is mapped
/// any more.
struct LeaseUnmap {
  static constexpr std::string_view kMethod = "lease.unmap";
  LeaseId lease;
  Json to_json() const;
  static Result<LeaseUnmap> from_json(const Json& json);
};

/// Call `lease.reclaim`: give up to `count` unused extents of a live lease. The reply names those
/// the worker has unmapped.
struct LeaseReclaim {
  static constexpr std::string_view kMethod = "lease.reclaim";
  LeaseId lease;
  std::uint32_t count = 1;
  Json to_json() const;
  static Result<LeaseReclaim> from_json(const Json& json);
};

struct ExtentsReclaimed {
  std::vector<ExtentId> extents;
  Json to_json() const;
  static Result<ExtentsReclaimed> from_json(const Json& json);
};

// ---------------------------------------------------------------- tenant → worker

struct Sampling {
  float temperature = 0.0f;  ///< 0 is greedy; 0 … 100, finite.
  std::uint64_t seed = 0;
  Json to_json() const;
  static Result<Sampling> from_json(const Json& json);
};

/// `generate`: the prompt as text or as tokens, exactly one. Reply: Generating; then notifications
/// `token` (TokenEmitted) and, once, `completed` (RequestCompleted).
struct Generate {
  static constexpr std::string_view kMethod = "generate";
  std::string token;  ///< From LeaseAcquired.
  RequestId request_id;
  std::optional<std::string> prompt;
  std::optional<std::vector<std::int32_t>> prompt_tokens;
  std::vector<std::int32_t> emitted;    ///< Rebind: tokens already delivered for this request.
  std::optional<LeaseId> rebound_from;  ///< Rebind: the lease they were delivered under.
  Sampling sampling;
  std::uint32_t max_emitted_tokens = 128;  ///< Counts `emitted` too; 1 … 2^20.
  bool ignore_eos = false;
  std::optional<std::int64_t> deadline_ms;  ///< From now.
  Json to_json() const;
  static Result<Generate> from_json(const Json& json);
};

struct Generating {
  RequestId request;
  std::uint32_t prompt_tokens = 0;
  Json to_json() const;
  static Result<Generating> from_json(const Json& json);
};

struct TokenEmitted {
  static constexpr std::string_view kMethod = "token";
  RequestId request;
  std::int32_t token = 0;
  std::uint32_t position = 0;  ///< 0 is the first emitted token of the request.
  std::string text;            ///< Whole UTF-8 characters; may be empty.
  Json to_json() const;
  static Result<TokenEmitted> from_json(const Json& json);
};

struct RequestCompleted {
  static constexpr std::string_view kMethod = "completed";
  RequestId request;
  std::string reason;  ///< worker/schedule/events.hpp, e.g. "Revoked".
  std::uint32_t emitted_tokens = 0;
  std::optional<LeaseId> lease;  ///< With Revoked and LeaseFenced.
  std::string scope;             ///< "tenant" or "engine", with Revoked.
  std::string revoke_reason;     ///< "operator" …, with Revoked.
  std::string detail;
  Json to_json() const;
  static Result<RequestCompleted> from_json(const Json& json);
};

/// `cancel`: ends one request of this connection. Reply: Empty; `completed` follows.
struct Cancel {
  static constexpr std::string_view kMethod = "cancel";
  RequestId request_id;
  Json to_json() const;
  static Result<Cancel> from_json(const Json& json);
};

// ---------------------------------------------------------------- views (broker → operator)

/// The four clocks of one revocation, in nanoseconds from the flip; -1: not (yet) known.
struct RevokeClocks {
  std::int64_t refuse_ns = -1;  ///< First poll that refused, stamped by its thread.
  std::int64_t error_ns = -1;   ///< Typed completion handed to the holder's socket.
  std::int64_t quiet_ns = -1;   ///< Last unit that could touch it is over.
  std::int64_t reuse_ns = -1;   ///< Scrubbed and leasable.
  Json to_json() const;
  static Result<RevokeClocks> from_json(const Json& json);
};

struct LeaseView {
  LeaseId lease;
  LeaseScope scope = LeaseScope::Tenant;
  std::string tenant;  ///< Empty for engine leases.
  std::string worker;
  LeaseState state = LeaseState::Live;
  RevokeReason reason = RevokeReason::None;
  std::string proof;  ///< Of the fence, e.g. "LaunchQuiet"; empty before.
  std::uint32_t extents = 0;
  std::uint64_t size_bytes = 0;
  std::int64_t deadline_boottime_ns = 0;
  std::optional<LeaseId> replaced_by;
  RevokeClocks clocks;
  Json to_json() const;
  static Result<LeaseView> from_json(const Json& json);
};

struct ExtentView {
  ExtentId extent;
  std::string state;  ///< broker/extents.hpp: "Free", "Owned" …
  std::optional<LeaseId> lease;
  std::uint64_t size_bytes = 0;
  std::uint64_t inode = 0;  ///< Names the memory object from outside.
  Json to_json() const;
  static Result<ExtentView> from_json(const Json& json);
};

struct WorkerView {
  std::string worker;
  WorkerId id;
  std::int64_t pid = 0;
  std::string state;  ///< "attached", "ready", "gone"
  std::string model;
  std::string address;
  std::uint32_t leases = 0;
  std::uint64_t revocations = 0;
  Json to_json() const;
  static Result<WorkerView> from_json(const Json& json);
};

struct TenantView {
  TenantAdmit policy;  ///< `request_id` left out.
  std::uint32_t leases_live = 0;
  std::uint32_t blocks_held = 0;
  Json to_json() const;
  static Result<TenantView> from_json(const Json& json);
};

/// Bytes over all extent states; the sum is the capacity, always.
struct StatusView {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t owned_bytes = 0;
  std::uint64_t draining_bytes = 0;
  std::uint64_t scrubbing_bytes = 0;
  std::uint64_t retained_bytes = 0;
  std::uint64_t quarantined_bytes = 0;
  std::uint32_t leases_live = 0;
  std::uint32_t leases_revoked = 0;  ///< Not fenced yet.
  std::uint64_t leases_fenced = 0;   ///< Ever.
  std::uint32_t workers = 0;
  std::uint32_t tenants = 0;
  std::string isolation;  ///< "separate-user", "same-user" or "no-worker"
  std::int64_t uptime_ms = 0;
  Json to_json() const;
  static Result<StatusView> from_json(const Json& json);
};

}  // namespace leasehold::wire
