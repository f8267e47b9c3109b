/// One round: starts a broker, workers and tenants, runs actions until enough processes are killed,
/// waits until all requests end, and judges the history.
#pragma once

#include <filesystem>

#include "common/clock.hpp"
#include "tests/checks/demo/poller.hpp"
#include "tests/checks/soak/counters.hpp"
#include "tests/checks/soak/workload.hpp"

namespace leasehold::soak {

/// Timeout for all requests to end after the last kill or revocation.
inline constexpr Duration kSettleTimeout = std::chrono::minutes(3);

struct RoundPlan {
  std::uint64_t seed = 0;
  std::uint32_t kills = 0;
  TimePoint until;                  ///< No actions after this time.
  std::filesystem::path directory;  ///< Must exist and be empty.
};

/// Errors: TimedOut (interrupted, or a process did not end), those of starting programs.
Result<RoundResult> run_round(const Settings& settings, const Workload& workload,
                              const demo::Poller& poller, const RoundPlan& plan);

/// Fills in each tenant's undisturbed text. Raises a short lifetime to at least the time that the
/// text took: if a lease always ends before its text is computed again, the tenant gives up.
/// Errors: as run_round.
Result<void> run_undisturbed(const Settings& settings, Workload& workload,
                             const demo::Poller& poller, const std::filesystem::path& directory);

}  // namespace leasehold::soak
