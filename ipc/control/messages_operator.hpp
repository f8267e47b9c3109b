/// Operator → broker: tenants, taking back, draining. The rules for all messages:
/// ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "ipc/control/messages_common.hpp"

namespace leasehold::wire {

/// `tenant.admit`: creates or changes a tenant. Reply: Empty.
struct TenantAdmit {
  static constexpr std::string_view kMethod = "tenant.admit";
  TenantId tenant;
  std::uint32_t max_concurrent = 1;  ///< Requests running at once, 1 … 64.
  std::uint32_t max_blocks = 1024;   ///< KV blocks over all its leases, 1 … 2^20.
  std::uint32_t weight = 1;          ///< 1 … 1000.
  Tier tier = Tier::Standard;
  std::int64_t ttl_ms = 10'000;                 ///< 100 … 86 400 000; of a lease without renewal.
  std::optional<std::int64_t> max_lifetime_ms;  ///< 100 … 10^12; no renewal past it; none: no end.
  std::optional<std::uint32_t> uid;             ///< Only this user may act for it; none: any.
  RequestId request_id;
  Json to_json() const;
  static Result<TenantAdmit> from_json(const Json& json);
};

/// `lease.revoke`: one lease, all of a tenant, or the engine leases on a part of the weights.
/// Exactly one of the three. Reply: LeasesTouched. Errors: UnknownLease, LeaseFenced,
/// UnknownTenant.
struct LeaseRevoke {
  static constexpr std::string_view kMethod = "lease.revoke";
  std::optional<LeaseId> lease;
  std::optional<TenantId> tenant;
  /// As WeightsOpen::part, or what such names begin with up to a dot: "blk.1" is the layer, and
  /// where weights are cut by tensors each of its tensors. 1 to 200 bytes on one line.
  std::optional<std::string> part;
  std::optional<std::string> worker;  ///< With a part: on this worker only.
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

/// `extent.open`: a look at leased memory from outside. Reply: Empty with 1 read-only descriptor.
/// Errors: PermissionDenied unless the broker runs with --allow-memory-check; UnknownLease when no
/// memory object stands behind the extent.
struct ExtentOpen {
  static constexpr std::string_view kMethod = "extent.open";
  ExtentId extent;
  Json to_json() const;
  static Result<ExtentOpen> from_json(const Json& json);
};

/// `quarantine.release`: gives quarantined memory back. Exactly one of the two. Granted only when
/// the object is empty after one more punch, or its last worker has exited. Reply:
/// QuarantineReleased. Errors: IllegalTransition (not quarantined, or somebody clears it right
/// now), StillWritable (its worker still writes to it), UnknownLease (no such object).
struct QuarantineRelease {
  static constexpr std::string_view kMethod = "quarantine.release";
  std::optional<ExtentId> extent;
  std::optional<RegionId> region;
  std::string reason;  ///< For the record; 1 to 200 bytes on one line.
  RequestId request_id;
  Json to_json() const;
  static Result<QuarantineRelease> from_json(const Json& json);
};

struct QuarantineReleased {
  std::uint64_t size_bytes = 0;  ///< Free again.
  Json to_json() const;
  static Result<QuarantineReleased> from_json(const Json& json);
};

struct LeasesTouched {
  std::vector<LeaseId> leases;
  Json to_json() const;
  static Result<LeasesTouched> from_json(const Json& json);
};

// Lists: `status` and `worker.list` take no parameters and answer one object and {"items":
// [view, …]}. `operator_action.list` takes {"limit": <n ≤ 1000>}, answers the newest actions first,
// and BadRequest from a broker without a state directory. The others come in pages, which end at
// the limit or at what fits into a line, and hold one item at least: `lease.list` and `event.list`
// take
// {"after": <slot or sequence>, "limit": <n ≤ 1000>}, `tenant.list`, `extent.list` and
// `quarantine.list` the messages below. The answer is {"items": [view or event, …]}, with "more":
// others follow; that of `event.list` has "oldest" and "newest" instead: the sequence numbers it
// still has.

/// `tenant.list`: tenants in the order of their names.
struct TenantList {
  static constexpr std::string_view kMethod = "tenant.list";
  std::optional<TenantId> after;
  std::uint32_t limit = 1000;  ///< At most; 0 … 1000. Left out: 1000.
  Json to_json() const;
  static Result<TenantList> from_json(const Json& json);
};

/// `extent.list`: extents in the order of their ids.
struct ExtentList {
  static constexpr std::string_view kMethod = "extent.list";
  std::optional<ExtentId> after;
  std::uint32_t limit = 1000;
  Json to_json() const;
  static Result<ExtentList> from_json(const Json& json);
};

/// `quarantine.list`: quarantined extents in the order of their ids, then regions. At most one of
/// the two says what was seen last.
struct QuarantineList {
  static constexpr std::string_view kMethod = "quarantine.list";
  std::optional<ExtentId> after_extent;
  std::optional<RegionId> after_region;
  std::uint32_t limit = 1000;
  Json to_json() const;
  static Result<QuarantineList> from_json(const Json& json);
};

}  // namespace leasehold::wire
