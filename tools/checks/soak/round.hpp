/// One round: a fresh broker and workers, tenants in a loop, deeds until enough were killed, then
/// calm until everybody is done, then judgement.
#pragma once

#include <filesystem>

#include "common/clock.hpp"
#include "tools/checks/demo/poller.hpp"
#include "tools/checks/soak/counters.hpp"
#include "tools/checks/soak/workload.hpp"

namespace leasehold::soak {

struct RoundOrder {
  std::uint64_t seed = 0;
  std::uint32_t kills = 0;
  TimePoint until;                  ///< No more deeds from then on.
  std::filesystem::path directory;  ///< Its own, and there.
};

/// Errors: TimedOut (interrupted, or somebody never ended), those of starting programs.
Result<RoundResult> play_round(const Settings& settings, const Cast& cast,
                               const demo::Patience& patience, const RoundOrder& order);

/// Each part's text when nobody disturbs it. Errors: as above.
Result<void> play_calm(const Settings& settings, Cast& cast, const demo::Patience& patience,
                       const std::filesystem::path& directory);

}  // namespace leasehold::soak
