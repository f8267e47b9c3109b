/// Waits until a worker that is replaced has no lease of a tenant.
#pragma once

#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// Polls until the old worker is replaced, or has exited, and reports progress over `leases`.
/// Returns the worker's last view. Errors: IllegalTransition when the replacement was cancelled:
/// the new worker ended, an operator undrained the old one, or the broker restarted; UnknownWorker
/// when the old worker is not listed any more; TimedOut `timeout_ms` after the end of the grace, or
/// when the user interrupts, which does not end the replacement; those of the call.
Result<wire::WorkerView> wait_until_replaced(std::size_t leases, const ReplaceWorker& replace,
                                             const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
