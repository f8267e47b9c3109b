/// Broker → operator: the items of lists. The rules for all messages are in
/// ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "ipc/control/messages/audit.hpp"
#include "ipc/control/messages/cell/cell.hpp"
#include "ipc/control/messages/common.hpp"
#include "ipc/control/messages/operator.hpp"
#include "ipc/control/messages/worker.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold::wire {

/// The four latencies of one revocation, in nanoseconds since its words were stored. An unknown
/// latency is -1 here and missing in JSON.
struct RevokeClocks : Message<RevokeClocks> {
  std::int64_t refuse_ns = -1;  ///< First poll that refused, measured by its thread.
  std::int64_t error_ns = -1;   ///< RequestCompleted written to the holder's socket.
  std::int64_t quiet_ns = -1;   ///< End of the last unit that could touch the memory.
  std::int64_t reuse_ns = -1;   ///< Memory scrubbed and free to lease.
};

/// When the lease changed state, in boot-time nanoseconds; 0 means it has not.
struct LeaseTimes : Message<LeaseTimes> {
  std::int64_t granted_boottime_ns = 0;
  std::int64_t revoked_boottime_ns = 0;
  std::int64_t fenced_boottime_ns = 0;
  std::int64_t rebound_boottime_ns = 0;  ///< A request continued under another lease.
  /// The worker stopped the lease's requests by itself, before the broker stored the words.
  std::int64_t worker_stopped_boottime_ns = 0;
};

struct LeaseView : Message<LeaseView> {
  LeaseId lease;
  LeaseScope scope = LeaseScope::Tenant;
  /// Tenant lease: its tenant. Adapter lease: the adapter's owner. Otherwise empty.
  std::string tenant;
  /// Engine lease: its model. Shared lease: name and version of the adapter that computed the text,
  /// "support@2"; empty for the base model. Otherwise empty.
  std::string model;
  /// Engine lease: its part of the weights. Shared lease: the name of the text. Adapter lease: its
  /// name and version, "support@2".
  std::string part;
  std::string worker;
  LeaseState state = LeaseState::Live;
  RevokeReason reason = RevokeReason::None;
  std::string proof;          ///< Kind of fence proof, e.g. "LaunchQuiet"; empty until fenced.
  std::uint32_t extents = 0;  ///< In the KV pool.
  /// KV blocks charged to the tenant. Shared lease: published blocks; 0 while they are computed.
  std::uint32_t blocks = 0;
  std::uint64_t size_bytes = 0;  ///< Size of its KV extents or weights.
  std::uint64_t swap_bytes = 0;
  std::uint32_t quarantined_extents = 0;  ///< Extents whose teardown is unproven.
  std::int64_t deadline_boottime_ns = 0;
  std::int64_t drain_deadline_boottime_ns = 0;  ///< 0 means not draining.
  /// The lease that replaced it, or under which a request continued.
  std::optional<LeaseId> replaced_by;
  RevokeClocks clocks;
  LeaseTimes times;
};

struct ExtentView : Message<ExtentView> {
  ExtentId extent;
  MemoryPool pool = MemoryPool::Kv;
  std::string state;  ///< broker/books/extents.hpp: "Free", "Owned" …
  std::optional<LeaseId> lease;
  std::uint64_t size_bytes = 0;
  std::uint64_t inode = 0;  ///< Inode of the memory object; identifies it outside the broker.
};

/// Quarantined memory: its teardown is unproven. The broker does not lease it again until an
/// operator releases it. Exactly one of extent and region is given.
struct QuarantineView : Message<QuarantineView> {
  std::optional<ExtentId> extent;
  std::optional<RegionId> region;
  std::optional<LeaseId> lease;  ///< The last lease on it.
  std::string worker;            ///< The worker of that lease; empty when no longer known.
  std::int64_t since_boottime_ns = 0;
  std::uint64_t size_bytes = 0;
  std::string why;  ///< Why the memory is quarantined.
};

struct WorkerView : Message<WorkerView> {
  std::string worker;
  WorkerId id;
  std::int64_t pid = 0;
  std::string state;  ///< "attached", "ready", "lost" (may still run), "gone"
  /// "serving"; "draining" while a drained worker has a tenant's lease, then "drained"; "replacing"
  /// and "replaced" for a worker that another one replaces; "out_of_service" for a worker without
  /// weights; "asleep" and "waking" (broker/decide/worker/worker_sleep.hpp).
  std::string drain = "serving";
  std::optional<std::string> out_of_service;  ///< Why the worker computes nothing.
  std::string model;
  std::vector<std::string> aliases;  ///< See WorkerReady, also for the next three fields.
  std::string arithmetic;
  std::optional<TextIdentity> text_identity;
  std::uint32_t max_context = 0;
  std::string address;
  std::uint32_t leases = 0;
  std::uint64_t revocations = 0;
  /// The worker that replaces this one. If missing, the next two fields are 0.
  std::optional<std::string> replaced_by;
  std::uint32_t leases_moved = 0;  ///< Leases moved to `replaced_by`. May be missing.
  /// Leases that ended otherwise since the replacement began. May be missing.
  std::uint32_t leases_ended = 0;
};

/// Quantiles of a clock or of rebinds, in nanoseconds; p50 and p99 are at most 12.5 % too high.
struct LatencySummary : Message<LatencySummary> {
  std::uint64_t count = 0;  ///< If 0, the times below are 0.
  std::int64_t p50_ns = 0;
  std::int64_t p99_ns = 0;
  std::int64_t max_ns = 0;
};

/// Rebinds with a known latency: from the revocation to the admission of the request under the new
/// lease. For a moved request, the worker measures the latency.
struct RebindSummary {
  LatencySummary since_start;  ///< Since the start of the broker.
  LatencySummary last_minute;  ///< The values of the last 55 to 60 s.
};

struct TenantView : Message<TenantView> {
  TenantPolicy policy;
  std::uint32_t leases_live = 0;
  std::uint32_t blocks_held = 0;
  std::uint32_t swap_blocks_held = 0;
  bool draining = false;  ///< It gets no new lease.
  TenantServed served;    ///< Counted over all workers since the broker started.
  RebindSummary rebinds;
  std::uint64_t tokens_today = 0;  ///< In this day of UTC, by usage records. May be missing.
  std::optional<CellPart> part;    ///< Only of a tenant of a cell.
  /// Its leases since the first, by their records in the audit chain. Missing without a state
  /// directory and before the first lease.
  std::optional<LeaseCounts> leases;
  /// Leases on memory of its adapters that are not fenced, and their bytes. May be missing.
  std::uint32_t adapter_leases = 0;
  std::uint64_t adapter_bytes = 0;
};

/// What an operator did; see events::OperatorAction.
struct OperatorActionView : Message<OperatorActionView> {
  std::int64_t at_unix_s = 0;
  std::uint32_t uid = 0;
  std::string action;
  std::string object;
  std::string reason;
  bool done = true;
};

struct ClockSummary : Message<ClockSummary> {
  std::string clock;  ///< "t_refuse", "t_error", "t_quiet", "t_reuse"
  LatencySummary since_start;
  LatencySummary last_minute;  ///< The values of the last 55 to 60 s.
};

/// The rebinds of one mode, of all tenants.
struct ModeSummary {
  /// The mode in the event `rebind`; "adopt" for a reprefill that adopted memory.
  std::string mode;
  RebindSummary rebinds;
};

/// The swap pool. The bytes of the extent states always add up to its capacity.
struct SwapView {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t owned_bytes = 0;
  std::uint64_t draining_bytes = 0;
  std::uint64_t scrubbing_bytes = 0;
  std::uint64_t retained_bytes = 0;
  std::uint64_t quarantined_bytes = 0;
  std::uint64_t unproven_bytes = 0;  ///< See StatusView.
};

/// The cell of this host.
struct CellView {
  CellName cell;
  bool has_agent = false;         ///< An agent of the cell is connected.
  std::uint64_t incarnation = 0;  ///< See CellCeiling, also for the next field.
  std::int64_t ceiling_boottime_ns = 0;
  std::int64_t ceiling_age_ms = 0;  ///< Time since the newest CellCeiling; 0 without one.
  /// How long the cell's tenants may still run; 0: they may not.
  std::int64_t ceiling_left_ms = 0;
  std::uint32_t tenants = 0;
  std::uint32_t free_blocks = 0;  ///< KV blocks in the free memory of this host.
};

/// State of the broker. The bytes of the extent states always add up to the capacity: first those
/// of the KV pool, then those of swap.
struct StatusView : Message<StatusView> {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t owned_bytes = 0;
  std::uint64_t draining_bytes = 0;
  std::uint64_t scrubbing_bytes = 0;
  std::uint64_t retained_bytes = 0;
  std::uint64_t quarantined_bytes = 0;
  /// Device memory that is unmapped, but is freed only when its worker exits.
  std::uint64_t held_bytes = 0;
  /// The part of owned, draining and scrubbing bytes that lost workers hold.
  std::uint64_t unproven_bytes = 0;
  SwapView swap;
  /// For files that hold sealed blocks; 0: the broker lends none.
  std::uint64_t spill_capacity_bytes = 0;
  std::uint64_t spill_lent_bytes = 0;  ///< Files of the workers that run.
  std::uint32_t leases_live = 0;
  std::uint32_t leases_revoked = 0;    ///< Revoked and not fenced yet.
  std::uint32_t leases_stuck = 0;      ///< Revoked leases that have exceeded the fence timeout.
  std::int64_t oldest_revoked_ms = 0;  ///< Age of the oldest revoked lease; 0 means none.
  std::uint64_t leases_fenced = 0;     ///< Since the broker started.
  std::uint32_t workers = 0;
  std::uint32_t workers_lost = 0;            ///< Lost workers get no lease, but may still run.
  std::uint32_t workers_out_of_service = 0;  ///< Part of `workers`; see WorkerView. May be missing.
  std::uint32_t workers_asleep = 0;          ///< Part of `workers`, also "waking". May be missing.
  std::uint32_t tenants = 0;
  /// Tenants with a live lease, or with a lease that was revoked within the last minute, was not
  /// released by its holder and is not replaced yet.
  std::uint32_t tenants_live = 0;
  std::string isolation;       ///< "separate-users", "same-user" or "no-worker"
  std::uint64_t tampered = 0;  ///< Lease table slots found changed by another process, in total.
  /// Decisions that could not be written to the journal at once, since the broker started. May be
  /// missing.
  std::uint64_t journal_faults = 0;
  /// Lines of the broker's log that the reader of its stderr did not take. May be missing.
  std::uint64_t log_lines_dropped = 0;
  std::int64_t uptime_ms = 0;
  std::vector<ClockSummary> clocks;    ///< One for each of the four clocks.
  std::string device = "cpu";          ///< The device whose memory is leased: "cpu", "cuda:0" …
  std::string device_uuid;             ///< UUID of the card; empty for "cpu".
  std::string device_state = "ready";  ///< "ready", or "lost" when its agent has exited.
  std::uint32_t device_losses = 0;     ///< Agents that have exited, in total.
  std::vector<ModeSummary> rebinds;    ///< One for each mode.
  std::optional<CellView> cell;        ///< Missing until an agent has attached.
  /// Leases on memory of adapters that are not fenced, and their bytes. May be missing.
  std::uint32_t adapters_loaded = 0;
  std::uint32_t adapters_loading = 0;
  std::uint32_t adapters_ending = 0;  ///< Revoked.
  std::uint64_t adapter_bytes = 0;
};

}  // namespace leasehold::wire
