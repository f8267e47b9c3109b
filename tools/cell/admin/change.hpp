/// The commands of `brokerctl cell` that change a cell.
///
/// A change of a tenant compares the ledger, and mails every host that has a part. It takes effect
/// when every host has applied it or has stopped; `Wait` waits for that.
///
/// Errors of all: those of etcd::Client. After TimedOut and ConnectionLost the change may have been
/// executed, or be executed later; the same command may be repeated.
#pragma once

#include <optional>

#include "ipc/control/messages/keys.hpp"
#include "tools/cell/admin/calls.hpp"

namespace leasehold::cell {

/// Whether a command waits until its change holds on every host, and how long at most. After that
/// time, or when the user interrupts, the error TimedOut says host by host what is missing.
using Wait = std::optional<Duration>;

/// Limits of a tenant; those that are missing keep their value, or get the default of a new tenant.
struct Limits {
  std::optional<std::uint32_t> concurrent, blocks, reserved, tokens_per_minute;
  std::optional<std::uint32_t> adapters;  ///< On each host, as the next member.
  std::optional<std::uint64_t> adapter_bytes;
};

/// What a command sets of a key; what is missing keeps its value.
struct KeyChange {
  std::optional<std::string> name;
  std::optional<std::int64_t> expires_unix_ms;
  bool never_expires = false;  ///< Removes the expiry.
  wire::KeyLimits limits;      ///< Over all hosts; see CellKey.
  /// Names of the limits that the key no longer has; see wire::KeyUpdate.
  std::vector<std::string> removes;
};

/// Errors: BadRequest for more reserved blocks than blocks.
Result<Answer> admit_tenant(const Calls& calls, const TenantId& tenant, const Limits& limits,
                            Wait wait);
/// Sets the limits to zero. It may be repeated. Errors: UnknownTenant; TimedOut as above.
Result<Answer> remove_tenant(const Calls& calls, const TenantId& tenant, Wait wait);
/// Stores the hash of `api_key`, which the answer shows. Errors: UnknownTenant; BadRequest for an
/// expiry that has passed, or a limit above the tenant's.
Result<Answer> create_key(const Calls& calls, const TenantId& tenant, const KeyChange& values,
                          const std::string& api_key);
/// Errors: BadRequest for an unknown key, and as in create_key; TimedOut as above.
Result<Answer> update_key(const Calls& calls, const ApiKeyId& key, const KeyChange& change,
                          Wait wait);
/// A key that was revoked in the last days may be revoked again, with the same result. Errors:
/// BadRequest for an unknown key; TimedOut as above.
Result<Answer> revoke_key(const Calls& calls, const ApiKeyId& key, Wait wait);
/// `is_draining`: from its next beat on the host drains its workers. Errors: UnknownWorker for a
/// host that is not a member.
Result<Answer> drain_host(const Calls& calls, const HostName& host, bool is_draining);
/// Ends the membership of a host that an operator knows to be stopped. Errors: as drain_host.
Result<Answer> expire_host(const Calls& calls, const HostName& host);

}  // namespace leasehold::cell
