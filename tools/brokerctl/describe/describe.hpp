/// `brokerctl describe NOUN NAME`: what the broker knows about one thing.
#pragma once

#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// Writes the fields of one lease, tenant, worker, key, extent or adapter, what belongs to it
/// (leases, keys, extents, quarantined memory), its newest events, the operator actions on it, and
/// the commands that may come next: as text, or with Json as one object. A broker without
/// --state-dir keeps no operator actions; an observer gets neither these nor keys. Events are those
/// that the broker still holds. Errors: those of named.hpp and find_lease.hpp for a name that does
/// not exist; those of the calls; MalformedMessage.
Result<void> describe(const Describe& what, Output output, const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
