/// API keys: operator → broker, and the query of a worker. The rules for all messages are in
/// ipc/control/messages.hpp; the form of a key is in ipc/control/tokens/api_key.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/control/messages/common.hpp"
#include "ipc/control/messages/rates.hpp"

namespace leasehold::wire {

inline constexpr std::size_t kMaxKeysPerTenant = 64;
/// The end of the year 2199, so that nanoseconds fit into 64 bits.
inline constexpr std::int64_t kLastExpiry_ms = 7'258'118'399'999;

/// Limits of one key. The limits of its tenant hold as well.
struct KeyLimits {
  std::optional<std::uint32_t> max_concurrent;  ///< Running and waiting requests; 1 … 64.
  RateLimits rates;
  bool operator==(const KeyLimits&) const = default;
};

/// `key.create`: stores the hash of an API key for a tenant; only the caller has the key. Only the
/// agent changes keys of a cell's tenant; others get PermissionDenied. Reply: Empty. Errors:
/// UnknownTenant, QuotaConcurrent (64 keys per tenant), BadRequest (the key exists, expires in the
/// past, or has a limit above its tenant's, unless that is of a cell), DiskFull (no key was
/// created).
struct KeyCreate : Message<KeyCreate> {
  static constexpr std::string_view kMethod = "key.create";
  TenantId tenant;
  std::string hash;                             ///< The result of hash_of_api_key.
  std::string name;                             ///< Shown in lists; may be empty or missing.
  std::optional<std::int64_t> expires_unix_ms;  ///< Before the year 2200; empty: never.
  KeyLimits limits;
  RequestId request_id;
};

/// `key.update`: changes the given values, and removes limits. The requests of the key continue,
/// and an expired key is valid again once its expiry is in the future. Reply: KeyView. Errors:
/// BadRequest for an unknown key and in the cases of `key.create`; DiskFull when the change took
/// effect but is not on disk.
struct KeyUpdate : Message<KeyUpdate> {
  static constexpr std::string_view kMethod = "key.update";
  ApiKeyId key;
  std::optional<std::string> name;
  std::optional<std::int64_t> expires_unix_ms;
  bool never_expires = false;  ///< Removes the expiry. May be missing.
  KeyLimits limits;
  /// Names of the limits that the key no longer has: "max_concurrent", "tokens_per_minute",
  /// "requests_per_minute", "tokens_per_day". May be missing.
  std::vector<std::string> removes;
  RequestId request_id;
};

/// `key.revoke`: removes a key and revokes the leases that were acquired with it
/// (`policy_changed`). Reply: LeasesTouched. Errors: BadRequest for an unknown key; DiskFull when
/// the revocation took effect but is not on disk.
struct KeyRevoke : Message<KeyRevoke> {
  static constexpr std::string_view kMethod = "key.revoke";
  ApiKeyId key;
  RequestId request_id;
};

/// `key.check`, a query of a worker: checks the key that an HTTP client presents. Reply: KeyOwner.
/// Errors: BadToken, also for an expired key.
struct KeyCheck : Message<KeyCheck> {
  static constexpr std::string_view kMethod = "key.check";
  std::string api_key;
};

struct KeyOwner : Message<KeyOwner> {
  ApiKeyId key;
  TenantId tenant;
  std::int64_t tenant_admitted_unix_ms = 0;  ///< See TenantAdmission.
};

/// A tenant from its admission to its removal. When it is admitted again under the same name, it
/// has another time.
struct TenantAdmission {
  TenantId tenant;
  std::int64_t admitted_unix_ms = 0;
};

/// `tenant.check`, a query of a worker that keeps files of these tenants. Reply: the same message
/// with those that were removed.
struct TenantCheck : Message<TenantCheck> {
  static constexpr std::string_view kMethod = "tenant.check";
  static constexpr std::size_t kMaxTenants = 1000;
  std::vector<TenantAdmission> tenants;
};

/// `key.list`: API keys in the order of their ids.
struct KeyList : Message<KeyList> {
  static constexpr std::string_view kMethod = "key.list";
  std::optional<TenantId> tenant;  ///< All keys of this one; then `after` and `limit` are ignored.
  std::optional<ApiKeyId> after;
  std::uint32_t limit = 1000;  ///< See TenantList.
};

/// An item of `key.list`.
struct KeyView : Message<KeyView> {
  ApiKeyId key;
  TenantId tenant;
  std::string name;
  std::int64_t created_unix_ms = 0;
  std::optional<std::int64_t> expires_unix_ms;
  bool expired = false;
  /// The minute in which the last usage record of the key arrived.
  std::optional<std::int64_t> last_used_unix_ms;
  std::uint64_t tokens_today = 0;
  KeyLimits limits;
};

}  // namespace leasehold::wire
