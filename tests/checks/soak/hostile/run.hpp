/// One broker, one worker, honest tenants, and attackers that do everything at once.
///
///   undisturbed texts ─► short attack ─► calm ─► control ─► attack ─► calm ─► … ─► last texts
///
/// The three kinds of window alternate and have one length, so that the drift of a shared machine
/// meets all of them, and their p99 are of as many gaps. All tenants wait for the same steps: 2 s
/// have only about 30 gaps that are independent. On few cores attackers slow others down by their
/// own use of the cores, whatever they attack. So they run only on idle cores (SCHED_IDLE), and a
/// control window has as many processes of that class that use as much of the cores. The ratio of
/// attack to control is what the broker and the worker cost honest tenants when they are attacked.
#pragma once

#include "tests/checks/demo/poller.hpp"
#include "tests/checks/soak/hostile/record.hpp"
#include "tests/checks/soak/hostile/settings.hpp"

namespace leasehold::soak {

/// A failure under attack is part of the record. After one the logs stay on disk, and stderr names
/// them. Errors: TimedOut after Ctrl-C, and those of starting the system.
Result<HostileRecord> run_hostile(const HostileSettings& settings, const demo::Poller& poller);

}  // namespace leasehold::soak
