/// One round: a fresh broker and workers, tenants in a loop, actions until enough were killed, then
/// calm until everybody is done, then judgement.
#pragma once

#include <filesystem>

#include "common/clock.hpp"
#include "tools/checks/demo/poller.hpp"
#include "tools/checks/soak/counters.hpp"
#include "tools/checks/soak/workload.hpp"

namespace leasehold::soak {

struct RoundPlan {
  std::uint64_t seed = 0;
  std::uint32_t kills = 0;
  TimePoint until;                  ///< No more actions from then on.
  std::filesystem::path directory;  ///< Its own, and there.
};

/// Errors: TimedOut (interrupted, or somebody never ended), those of starting programs.
Result<RoundResult> run_round(const Settings& settings, const Workload& workload,
                              const demo::Poller& poller, const RoundPlan& plan);

/// Each spec's text when nobody disturbs it. Errors: as above.
Result<void> run_undisturbed(const Settings& settings, Workload& workload,
                             const demo::Poller& poller, const std::filesystem::path& directory);

}  // namespace leasehold::soak
