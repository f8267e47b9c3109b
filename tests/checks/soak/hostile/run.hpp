/// Runs one broker, one worker, honest tenants, and attackers that make all attacks at the same
/// time.
///
///   undisturbed texts ─► short attack ─► calm ─► control ─► attack ─► calm ─► … ─► last texts
///
/// The three kinds of window alternate and have the same length, so that the drift of a shared
/// machine affects all of them, and their p99 are over the same number of gaps. All tenants wait
/// for the same steps, so 2 s have only about 30 independent gaps. With few cores, attackers slow
/// others down by their own use of the cores. So they run only on idle cores (SCHED_IDLE), and a
/// control window has the same number of processes of that class, which use the cores as much. The
/// ratio of attack to control shows how much slower broker and worker serve honest tenants when
/// they are attacked.
#pragma once

#include <filesystem>

#include "tests/checks/runner/poller.hpp"
#include "tests/checks/soak/hostile/record.hpp"
#include "tests/checks/soak/settings.hpp"

namespace leasehold::soak {

/// A failure under attack is part of the record. Precondition: the directory exists and is empty.
/// Errors: TimedOut after Ctrl-C, and those of starting the system.
Result<HostileRecord> run_hostile(const HostileSettings& settings, const runner::Poller& poller,
                                  const std::filesystem::path& directory);

}  // namespace leasehold::soak
