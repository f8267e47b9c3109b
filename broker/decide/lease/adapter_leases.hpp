/// Leases of scope Adapter: the memory of one version of an adapter on one worker. They belong to
/// the adapter's owner, or to no tenant if it is shared, and have no deadline.
#pragma once

#include "broker/decide/deciders.hpp"

namespace leasehold {

/// Answers `adapter.open`: the worker has mapped the lease.
void finish_adapter_open(Decision& decision, LeaseRecord& record, CallId call);

/// Records that the lease has ended. Precondition: it is Revoked and of scope Adapter.
void record_adapter_end(Decision& decision, const LeaseRecord& record);

}  // namespace leasehold
