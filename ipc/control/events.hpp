/// The closed list of events, each one JSON object: {"event": name, "at_boottime_ns": t, …}.
///
/// The size of an event is bounded: an array has at most as many elements as a step has sequences,
/// a text at most 200 bytes on one line.
///
/// Broker and workers write them, `brokerctl events` prints them, tests check them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "ipc/control/messages/common.hpp"
#include "ipc/segment/launch_site.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold::events {

/// `lease_state`: a lease was granted, revoked or fenced.
struct LeaseStateChanged {
  LeaseId lease;
  LeaseState state = LeaseState::Live;
  RevokeReason reason = RevokeReason::None;
  std::string tenant;  ///< Empty unless the scope is Tenant.
  std::string proof;   ///< Kind of fence proof; only with Fenced.
};

/// `region_state`: an extent or weights region changed state.
struct RegionStateChanged {
  std::uint64_t region = 0;
  std::string kind;  ///< "extent" or "weights"
  std::string state;
  std::string lease;  ///< Empty when no lease holds the memory.
};

/// `forward_revoked`: the first poll that refused a lease; one event for each revocation. Workers
/// report every refusing poll; the broker drops all but the first, and those of leases that ended
/// without a revocation.
struct ForwardRevoked {
  LeaseId lease;
  LaunchSite kernel_site = LaunchSite::Commit;
  std::uint16_t layer = 0;
  std::uint32_t kv_position = 0;
  /// Time since the broker stored the revoked word; 0 where the lease table does not have that
  /// time.
  std::int64_t since_flip_ns = 0;
};

/// `batched_decode_step`: one committed step. Its timestamp is taken before the commit reads the
/// words, so a lease fenced before the timestamp has no row in the step.
struct BatchedDecodeStep {
  std::uint64_t step = 0;
  std::uint32_t n_seqs = 0;
  std::uint32_t emitted_tokens = 0;
  std::vector<std::uint32_t> per_seq_kv_positions;
  std::vector<LeaseId> per_seq_leases;  ///< The lease of each position above.
};

/// `rebind`: a worker runs a request under another lease than before. The client uses the same
/// request id under both leases.
struct Rebind {
  std::string tenant;
  RequestId request;
  LeaseId old_lease;
  LeaseId new_lease;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t emitted_tokens = 0;  ///< Tokens emitted under earlier leases.
  /// Set by the broker: the time from the revocation of the old lease to the admission under the
  /// new one. -1, and missing in JSON, if the old lease was not revoked or is unknown. For a moved
  /// request the worker sets it: the time from the call to the end of the copy. The broker bounds
  /// that by the time since the grant of the new lease.
  std::int64_t latency_ns = -1;
  /// May be missing. A worker reports any move mode for a moved request; the broker replaces the
  /// mode by the exact one.
  wire::RebindMode mode = wire::RebindMode::Reprefill;
  std::string trace_id;  ///< The trace id of RequestSubmit::traceparent. May be missing.
};

/// `request_completed`: the worker wrote the typed end to the holder's socket.
struct RequestCompletedEvent {
  RequestId request;
  std::string tenant;
  LeaseId lease;
  std::string reason;
  std::uint32_t emitted_tokens = 0;
  std::string scope;     ///< See RequestCompleted::scope. May be missing.
  std::string trace_id;  ///< The trace id of RequestSubmit::traceparent. May be missing.
};

/// `lease_draining`: the lease gets no new work, and the broker revokes it at the deadline.
struct LeaseDraining {
  LeaseId lease;
  std::string tenant;  ///< Empty for engine leases.
  std::int64_t deadline_boottime_ns = 0;
};

/// `operator_action`: an operator changed something. `done` is false for a quarantine release that
/// was refused and for a key that could not be stored; other refused calls leave no action.
struct OperatorAction {
  /// "admit", "remove", "revoke", "publish", "drain", "undrain", "replace", "sleep", "wake",
  /// "quarantine_release", "key_create", "key_update", "key_revoke", "cancel", "adapter_add",
  /// "adapter_remove", "adapter_load" or "adapter_unload". The journal and
  /// `operator_action.list` use the same words.
  std::string action;
  /// "tenant:acme", "lease:17.4", "worker:w1", "part:blk.1@w1", "extent:5", "region:3", "key:0f…",
  /// "request:acme/req-1@w1", "adapter:support", "adapter:support@w1"
  std::string object;
  std::uint32_t uid = 0;
  /// The operator's reason, or why a key was not stored; empty for the other actions.
  std::string reason;
  bool done = false;
};

/// `worker_untrusted`: a process changed data that only the broker may write, or a worker wrote to
/// memory after its fence.
struct WorkerUntrusted {
  /// "slot", "free_slot", "counter", "header": a part of the lease table. "extent", "weights":
  /// memory.
  std::string what;
  std::uint64_t index = 0;  ///< Index of the slot or counter, or id of the extent or region.
  std::string lease;        ///< The lease of the slot or extent; may be empty.
  /// The worker that the memory, lease or counter belongs to. A write to the lease table leaves no
  /// trace of its author.
  std::string worker;
};

/// `worker_unresponsive`: the broker has waited too long for a worker. Written when the broker
/// kills the worker, and for "ping_reply" also after half of the timeout.
struct WorkerUnresponsive {
  std::string worker;
  std::string waiting_for;  ///< "ping_reply", "answer", "delivery", "fence_proof", "unmap"
  std::int64_t timeout_ms = 0;
  bool killed = false;
};

/// `worker_replacement`: another worker takes over the tenants of a worker.
struct WorkerReplacement {
  std::string worker;
  std::string by;
  /// "begun"; "done": the worker has no lease of a tenant, so its process may be stopped;
  /// "dropped": `by` ended or an operator undrained `worker`, which serves again.
  std::string state;
  std::uint32_t leases_moved = 0;
  std::uint32_t leases_ended = 0;  ///< Leases that ended without moving.
};

/// `worker_service`: a worker stops computing because it cannot restore its weights or sleeps, or
/// computes again.
struct WorkerService {
  std::string worker;
  std::string state;  ///< "out_of_service", "asleep", "waking", "in_service"
  /// Why it is out of service, and why it is asleep: "operator", "idle", or why it could not wake.
  std::string reason;
};

/// `key_expired`: an API key has expired. Its leases are revoked next, as `policy_changed`. Written
/// again for an expired key when the broker starts or the machine's clock is set.
struct KeyExpired {
  std::string key;
  std::string tenant;
  std::string name;  ///< The name of the key; may be empty.
  std::int64_t expires_unix_ms = 0;
};

/// `cell_membership`: this host is a member of its cell under another incarnation than before, so
/// its parts of the limits are void. 0: it has left the cell.
struct CellMembership {
  CellName cell;
  std::uint64_t incarnation = 0;
};

/// `adapter_loaded`: a worker has filled the lease of an adapter, which requests can use now.
struct AdapterLoaded {
  AdapterName adapter;
  std::uint32_t version = 0;
  std::string tenant;  ///< Its owner; empty: shared.
  LeaseId lease;
  std::string worker;
  std::uint64_t size_bytes = 0;  ///< Memory of the lease.
};

/// `adapter_evicted`: the lease of an adapter has ended.
struct AdapterEvicted {
  AdapterName adapter;
  std::uint32_t version = 0;
  std::string tenant;  ///< See AdapterLoaded.
  LeaseId lease;
  std::string worker;
  RevokeReason reason = RevokeReason::None;  ///< ModelUnloaded: the worker needed the memory.
};

using Event = std::variant<LeaseStateChanged, RegionStateChanged, ForwardRevoked, BatchedDecodeStep,
                           Rebind, RequestCompletedEvent, OperatorAction, WorkerUntrusted,
                           WorkerUnresponsive, LeaseDraining, WorkerReplacement, WorkerService,
                           KeyExpired, CellMembership, AdapterLoaded, AdapterEvicted>;

std::string_view name(const Event& event);

nlohmann::json to_json(const Event& event, TimePoint at);

struct StampedEvent {
  Event event;
  TimePoint at;
};

/// Errors: BadRequest for JSON that `to_json` cannot have written, and for an oversized field.
Result<StampedEvent> from_json(const nlohmann::json& json);

}  // namespace leasehold::events
