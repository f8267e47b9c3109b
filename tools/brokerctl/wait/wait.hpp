/// Waits for the end of a revocation, a drain or the replacement of a worker, and for workers that
/// are ready.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// Waits until all `leases` are Fenced, then up to 500 ms more until their memory is reusable,
/// which is the last of the four clocks. That clock stays unknown (-1) for memory that is
/// quarantined or holds published weights. Returns the leases in the given order. Errors: TimedOut
/// naming a lease that is not fenced after `timeout`, or when the user interrupts; those of the
/// call.
Result<std::vector<wire::LeaseView>> wait_until_fenced(const std::vector<LeaseId>& leases,
                                                       Duration timeout,
                                                       const Dependencies& dependencies);

/// Errors: StillWritable naming the first lease with quarantined memory.
Result<void> check_none_quarantined(const std::vector<wire::LeaseView>& leases);

/// Waits until all `leases`, which the drain named, are Fenced, and reports progress. With a
/// drained worker it also waits for those of its leases that were revoked before, because the
/// worker is in use until then. Returns the last view of each lease, `leases` first. A lease that
/// ended between two calls, and whose slot another lease uses, is Fenced without a reason. Errors:
/// TimedOut naming a lease that is not Fenced `timeout_ms` after its revocation or the end of the
/// grace, or when the user interrupts, which does not end the drain; those of the call.
Result<std::vector<wire::LeaseView>> wait_until_drained(const std::vector<LeaseId>& leases,
                                                        const Drain& drain,
                                                        const Dependencies& dependencies);

/// Checks that each lease ended because its requests were done or its tenant ended it. Errors:
/// LeaseRevoked naming the first lease that ended otherwise; StaleGeneration naming a lease whose
/// end was not seen.
Result<void> check_all_ended_normally(std::span<const wire::LeaseView> leases);

/// Checks that the drained worker has no tenant lease. Errors: UnknownWorker (it is gone or lost),
/// IllegalTransition (it serves again), Draining (it has leases again); those of the call.
Result<void> check_worker_drained(const std::string& worker, const Dependencies& dependencies);

/// Polls until the old worker is replaced, or has exited, and reports progress over `leases`.
/// Returns the worker's last view. Errors: IllegalTransition when the replacement was cancelled:
/// the new worker ended, an operator undrained the old one, or the broker restarted; UnknownWorker
/// when the old worker is not listed any more; TimedOut `timeout_ms` after the end of the grace, or
/// when the user interrupts, which does not end the replacement; those of the call.
Result<wire::WorkerView> wait_until_replaced(std::size_t leases, const ReplaceWorker& replace,
                                             const Dependencies& dependencies);

/// Polls until each of `workers` is ready and serves, or is asleep. Without names: until one
/// serves, and none still loads its weights, is lost or has no weights. Also waits for a broker
/// whose socket does not exist yet. Errors: TimedOut naming each worker that does not serve, or
/// when the user interrupts; those of the call, except that the broker is away.
Result<void> wait_until_ready(const std::vector<std::string>& workers, Duration timeout,
                              const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
