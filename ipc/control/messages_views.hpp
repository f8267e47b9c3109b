/// Broker → operator: what the lists show. The rules for all messages: ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/ids.hpp"
#include "ipc/control/messages_common.hpp"
#include "ipc/control/messages_operator.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold::wire {

/// The four clocks of one revocation, in nanoseconds from the flip; -1: not (yet) known.
struct RevokeClocks {
  std::int64_t refuse_ns = -1;  ///< First poll that refused, stamped by its thread.
  std::int64_t error_ns = -1;   ///< Typed completion handed to the holder's socket.
  std::int64_t quiet_ns = -1;   ///< Last unit that could touch it is over.
  std::int64_t reuse_ns = -1;   ///< Scrubbed and leasable.
  Json to_json() const;
  static Result<RevokeClocks> from_json(const Json& json);
};

/// When the lease went from one state to the next, in boot-time nanoseconds; 0: not (yet).
struct LeaseTimes {
  std::int64_t granted_boottime_ns = 0;
  std::int64_t revoked_boottime_ns = 0;
  std::int64_t fenced_boottime_ns = 0;
  std::int64_t rebound_boottime_ns = 0;  ///< A request of it went on under another lease.
  std::int64_t worker_stopped_boottime_ns =
      0;  ///< Its worker stopped it by itself, before the flip.
  Json to_json() const;
  static Result<LeaseTimes> from_json(const Json& json);
};

struct LeaseView {
  LeaseId lease;
  LeaseScope scope = LeaseScope::Tenant;
  std::string tenant;  ///< Empty for engine leases.
  std::string model;  ///< Which model's weights, and which part of them; empty for tenants' leases.
  std::string part;
  std::string worker;
  LeaseState state = LeaseState::Live;
  RevokeReason reason = RevokeReason::None;
  std::string proof;  ///< Of the fence, e.g. "LaunchQuiet"; empty before.
  std::uint32_t extents = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t quarantined_extents = 0;  ///< Written to after they were taken back.
  std::int64_t deadline_boottime_ns = 0;
  std::int64_t drain_deadline_boottime_ns = 0;  ///< No new work since; 0: not draining.
  std::optional<LeaseId> replaced_by;  ///< Where a request went on, or what was acquired instead.
  RevokeClocks clocks;
  LeaseTimes times;
  Json to_json() const;
  static Result<LeaseView> from_json(const Json& json);
};

struct ExtentView {
  ExtentId extent;
  std::string state;  ///< broker/books/extents.hpp: "Free", "Owned" …
  std::optional<LeaseId> lease;
  std::uint64_t size_bytes = 0;
  std::uint64_t inode = 0;  ///< Names the memory object from outside.
  Json to_json() const;
  static Result<ExtentView> from_json(const Json& json);
};

/// Memory that nobody gets until an operator has looked: touched after it was taken back.
struct QuarantineView {
  std::optional<ExtentId> extent;  ///< One of the two.
  std::optional<RegionId> region;
  std::optional<LeaseId> lease;  ///< Who held it last.
  std::string worker;            ///< Empty when the broker no longer knows it.
  std::int64_t since_boottime_ns = 0;
  std::uint64_t size_bytes = 0;
  std::string why;
  Json to_json() const;
  static Result<QuarantineView> from_json(const Json& json);
};

struct WorkerView {
  std::string worker;
  WorkerId id;
  std::int64_t pid = 0;
  std::string state;  ///< "attached", "ready", "lost" (it may still run), "gone"
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

/// What an operator did or tried.
struct OperatorActionView {
  std::int64_t at_unix_s = 0;
  std::uint32_t uid = 0;
  std::string action;  ///< "admit", "revoke", "drain", "quarantine_release"
  std::string object;  ///< "lease:17.4", "tenant:acme", "extent:5", "region:3"
  std::string reason;  ///< In the operator's words; empty where none are asked for.
  bool done = true;    ///< False: it was refused.
  Json to_json() const;
  static Result<OperatorActionView> from_json(const Json& json);
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
  std::uint64_t held_bytes = 0;  ///< Of a device, unmapped; only their worker's exit frees them.
  std::uint64_t unproven_bytes = 0;  ///< Of owned, draining and scrubbing: lost workers hold them.
  std::uint32_t leases_live = 0;
  std::uint32_t leases_revoked = 0;    ///< Not fenced yet.
  std::uint32_t leases_stuck = 0;      ///< Of those: for longer than the timeout for a fence.
  std::int64_t oldest_revoked_ms = 0;  ///< Age of the one that waits longest; 0: none.
  std::uint64_t leases_fenced = 0;     ///< Ever.
  std::uint32_t workers = 0;
  std::uint32_t workers_lost = 0;  ///< No lease is granted on them, and they may still run.
  std::uint32_t tenants = 0;
  std::string isolation;       ///< "separate-users", "same-user" or "no-worker"
  std::uint64_t tampered = 0;  ///< Lines of the lease table found changed by others, ever.
  std::int64_t uptime_ms = 0;
  std::string device = "cpu";          ///< Whose memory is lent: "cpu", "cuda:0" …
  std::string device_uuid;             ///< Of the card; empty for "cpu".
  std::string device_state = "ready";  ///< "ready", or "lost": its agent is gone.
  std::uint32_t device_losses = 0;     ///< Agents that ended, ever.
  Json to_json() const;
  static Result<StatusView> from_json(const Json& json);
};

}  // namespace leasehold::wire
