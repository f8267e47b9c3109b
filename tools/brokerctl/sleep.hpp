/// Runs `worker sleep` and `worker wake`.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/brokerctl/run.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::brokerctl {

/// The result of a verb, for programs and for people.
struct Printed {
  wire::Json document;
  cli::Table table;
};

/// With `wait`: the revoked leases with their clocks, once they are fenced. Errors: those of the
/// call and of wait_until_fenced.
Result<Printed> change_sleep(const SleepWorker& sleep, const Dependencies& dependencies);

/// With `wait`: the worker, once it has its weights. Errors: those of the call; PoolExhausted when
/// it fell asleep again; MissingWeight when it cannot restore its weights; UnknownWorker when it is
/// gone or lost; TimedOut, also when the user interrupts.
Result<Printed> change_sleep(const WakeWorker& wake, const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
