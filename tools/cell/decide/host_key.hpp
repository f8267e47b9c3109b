/// A key of the cell as a host gives it to its broker. Pure.
#pragma once

#include "ipc/control/messages/keys.hpp"
#include "tools/cell/decide/records.hpp"

namespace leasehold::cell {

/// A key's limits are divided as its tenant's: a host with `part` of the tenant's `whole` gets the
/// same share of each, and at least 1. So they are exceeded only by a key with fewer requests or
/// tokens than hosts.
wire::KeyLimits limits_on_host(const wire::KeyLimits& limits, const Share& part,
                               const Share& whole);

/// The messages that give a broker the key with these limits. Precondition: see KeyCreate.
wire::KeyCreate creation_of(const CellKey& key, const wire::KeyLimits& limits);
wire::KeyUpdate update_of(const CellKey& key, const wire::KeyLimits& limits);

bool is_expired(const CellKey& key, std::int64_t unix_ms);
/// Errors: BadToken when the key has expired at this time.
Result<void> check_expiry(const CellKey& key, std::int64_t unix_ms);

}  // namespace leasehold::cell
