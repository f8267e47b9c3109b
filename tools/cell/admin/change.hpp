/// The commands of `brokerctl cell` that change a cell.
///
/// A change of a tenant compares the ledger, and mails every host that has a part. It takes effect
/// when every host has applied it or has stopped; `Wait` waits for that.
///
/// Errors of all: those of etcd::Client. After TimedOut and ConnectionLost the change may have been
/// executed, or be executed later; the same command may be repeated.
#pragma once

#include <optional>

#include "tools/cell/admin/calls.hpp"

namespace leasehold::cell {

/// Whether a command waits until its change holds on every host, and how long at most. After that
/// time, or when the user interrupts, the error TimedOut says host by host what is missing.
using Wait = std::optional<Duration>;

/// Limits of a tenant; those that are missing keep their value, or get the default of a new tenant.
struct Limits {
  std::optional<std::uint32_t> concurrent, blocks, reserved, tokens_per_minute;
};

/// Errors: BadRequest for more reserved blocks than blocks.
Result<Answer> admit_tenant(const Calls& calls, const TenantId& tenant, const Limits& limits,
                            Wait wait);
/// Sets the limits to zero. Errors: UnknownTenant; TimedOut as above.
Result<Answer> remove_tenant(const Calls& calls, const TenantId& tenant, Wait wait);
/// Stores the hash of `api_key`, which the answer shows. Errors: UnknownTenant.
Result<Answer> create_key(const Calls& calls, const TenantId& tenant, const std::string& name,
                          const std::string& api_key);
/// Errors: BadRequest for an unknown key; TimedOut as above.
Result<Answer> revoke_key(const Calls& calls, const ApiKeyId& key, Wait wait);
/// `is_draining`: the host gets no new requests. Errors: UnknownWorker for a host that is not a
/// member.
Result<Answer> drain_host(const Calls& calls, const HostName& host, bool is_draining);
/// Ends the membership of a host that an operator knows to be stopped. Errors: as drain_host.
Result<Answer> expire_host(const Calls& calls, const HostName& host);

}  // namespace leasehold::cell
