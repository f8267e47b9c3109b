/// The closed list of events, each one JSON object: {"event": name, "at_boottime_ns": t, …}.
///
/// Each is bounded, so that a log of so many of them is: an array has at most as many entries as a
/// step has sequences, a text 200 bytes on one line.
///
/// Broker and workers write them; `brokerctl events` shows them; tests judge by them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "ipc/segment/launch_site.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold::events {

/// `lease_state`: a lease was granted, revoked, fenced.
struct LeaseStateChanged {
  LeaseId lease;
  LeaseState state = LeaseState::Live;
  RevokeReason reason = RevokeReason::None;
  std::string tenant;  ///< Empty for engine leases.
  std::string proof;   ///< With Fenced.
};

/// `region_state`: an extent or weights region changed hands.
struct RegionStateChanged {
  std::uint64_t region = 0;
  std::string kind;  ///< "extent" or "weights"
  std::string state;
  std::string lease;  ///< Empty when nobody's.
};

/// `forward_revoked`: the first poll that said no to a lease.
struct ForwardRevoked {
  LeaseId lease;
  LaunchSite kernel_site = LaunchSite::Commit;
  std::uint16_t layer = 0;
  std::uint32_t kv_position = 0;
  std::int64_t since_flip_ns = 0;
};

/// `batched_decode_step`: one committed step. Its stamp is from before the words were read for the
/// commit, so a lease that was fenced earlier than that can have no row in it.
struct BatchedDecodeStep {
  std::uint64_t step = 0;
  std::uint32_t n_seqs = 0;
  std::uint32_t emitted_tokens = 0;
  std::vector<std::uint32_t> per_seq_kv_positions;
  std::vector<LeaseId> per_seq_leases;  ///< Under which each of these moved.
};

/// `rebind`: a request goes on under another lease.
struct Rebind {
  std::string tenant;
  RequestId request;
  LeaseId old_lease;
  LeaseId new_lease;
  std::uint32_t prompt_tokens = 0;  ///< Prompt and tokens emitted before.
};

/// `request_completed`: the typed end was handed to the holder's socket.
struct RequestCompletedEvent {
  RequestId request;
  std::string tenant;
  LeaseId lease;
  std::string reason;
  std::uint32_t emitted_tokens = 0;
};

/// `lease_draining`: no new work under it from now on, taken back at the deadline.
struct LeaseDraining {
  LeaseId lease;
  std::string tenant;  ///< Empty for engine leases.
  std::int64_t deadline_boottime_ns = 0;
};

/// `operator_action`: something was done by hand that only a person may decide.
struct OperatorAction {
  std::string action;  ///< "admit", "revoke", "drain", "quarantine_release"
  std::string object;  ///< "tenant:acme", "lease:17.4", "extent:5", "region:3"
  std::uint32_t uid = 0;
  std::string reason;  ///< In the operator's words; empty where none are asked for.
  bool done = false;   ///< False: it was refused.
};

/// `worker_untrusted`: what only the broker may write was changed by somebody else, or memory was
/// written to after it had been taken back.
struct WorkerUntrusted {
  /// "slot", "free_slot", "counter", "header": which line of the lease table; "extent", "weights".
  std::string what;
  std::uint64_t index = 0;  ///< Of the line; the extent or region.
  std::string lease;        ///< Empty unless one stands in that slot, or had that extent.
  std::string worker;  ///< Who had the memory. Of the table: whose lease or counter it is, not who
                       ///< did it: that leaves no trace.
};

/// `worker_unresponsive`: a worker waiting_for something for too long. Said once when half of the
/// timeout with a silent one is over, and when a worker is killed for it.
struct WorkerUnresponsive {
  std::string worker;
  std::string waiting_for;  ///< "ping_reply", "answer", "delivery", "fence_proof", "unmap"
  std::int64_t timeout_ms = 0;
  bool killed = false;
};

using Event = std::variant<LeaseStateChanged, RegionStateChanged, ForwardRevoked, BatchedDecodeStep,
                           Rebind, RequestCompletedEvent, OperatorAction, WorkerUntrusted,
                           WorkerUnresponsive, LeaseDraining>;

std::string_view name(const Event& event);

nlohmann::json to_json(const Event& event, TimePoint at);

struct StampedEvent {
  Event event;
  TimePoint at;
};

/// BadRequest for anything that `to_json` would not have written, and for what is too long.
Result<StampedEvent> from_json(const nlohmann::json& json);

}  // namespace leasehold::events
