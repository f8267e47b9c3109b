/// One round: starts a broker, workers and tenants, runs a random script until enough processes are
/// killed, waits until all requests end, and judges the record.
#pragma once

#include <filesystem>

#include "tests/checks/runner/script.hpp"
#include "tests/checks/soak/counters.hpp"
#include "tests/checks/soak/workload.hpp"

namespace leasehold::soak {

/// The shares of each action.
extern const runner::Script kChaos;

struct RoundPlan {
  std::uint64_t seed = 0;
  std::uint32_t kills = 0;
  TimePoint until;                  ///< No actions after this time.
  std::filesystem::path directory;  ///< Must exist and be empty.
};

/// Errors: TimedOut (interrupted, or a process did not end), those of starting programs.
Result<RoundResult> run_round(const Settings& settings, const Workload& workload,
                              const runner::Poller& poller, const RoundPlan& plan);

}  // namespace leasehold::soak
