/// Runs `worker sleep` and `worker wake`.
#pragma once

#include "tools/brokerctl/changes/printed.hpp"
#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// With `wait`: the revoked leases with their clocks, once they are fenced. Errors: those of the
/// call and of wait_until_fenced.
Result<Printed> make_change(const SleepWorker& sleep, const Dependencies& dependencies);

/// With `wait`: the worker, once it has its weights. Errors: those of the call; PoolExhausted when
/// it fell asleep again; MissingWeight when it cannot restore its weights; UnknownWorker when it is
/// gone or lost; TimedOut, also when the user interrupts.
Result<Printed> make_change(const WakeWorker& wake, const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
