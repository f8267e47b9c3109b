/// One round: starts a broker, workers and tenants, runs actions until enough processes are killed,
/// waits until all requests end, and judges the history.
#pragma once

#include <filesystem>

#include "common/clock.hpp"
#include "tests/checks/demo/poller.hpp"
#include "tests/checks/soak/counters.hpp"
#include "tests/checks/soak/workload.hpp"

namespace leasehold::soak {

/// For all requests to end, once nothing is killed or revoked any more.
inline constexpr Duration kSettleTimeout = std::chrono::minutes(3);

struct RoundPlan {
  std::uint64_t seed = 0;
  std::uint32_t kills = 0;
  TimePoint until;                  ///< No actions after this time.
  std::filesystem::path directory;  ///< Exists and is empty.
};

/// Errors: TimedOut (interrupted, or a process did not end), those of starting programs.
Result<RoundResult> run_round(const Settings& settings, const Workload& workload,
                              const demo::Poller& poller, const RoundPlan& plan);

/// Fills in each tenant's undisturbed text. A short lifetime becomes at least as long as that text
/// took: on a machine where a lease ends before its text is computed again, a tenant gives up.
/// Errors: as run_round.
Result<void> run_undisturbed(const Settings& settings, Workload& workload,
                             const demo::Poller& poller, const std::filesystem::path& directory);

}  // namespace leasehold::soak
