/// Holder → broker: getting, keeping and resizing a lease. The rules for all messages:
/// ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/ids.hpp"
#include "ipc/control/messages_common.hpp"

namespace leasehold::wire {

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

/// `lease.hold`: after the broker was started again, the holder's process says on a new connection
/// that it is still there; the caller is the holder from now on. Reply: LeaseRenewed, with the
/// deadline as it stands. Errors: BadToken, PermissionDenied (another user, or held by another
/// connection), LeaseRevoked, LeaseFenced.
struct LeaseHold {
  static constexpr std::string_view kMethod = "lease.hold";
  LeaseId lease;
  std::string token;
  RequestId request_id;
  Json to_json() const;
  static Result<LeaseHold> from_json(const Json& json);
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

}  // namespace leasehold::wire
