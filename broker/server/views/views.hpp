/// The views of the state for operators. Pure. The server adds what the state does not have:
/// counters, inodes, uptime and isolation.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "broker/books/state.hpp"

namespace leasehold {

/// Names of the clocks, in the order of RevokeClock.
inline constexpr std::array<std::string_view, kRevokeClockCount> kRevokeClockNames{
    "t_refuse", "t_error", "t_quiet", "t_reuse"};

struct LeasePage {
  std::vector<wire::LeaseView> items;  ///< Ordered by slot.
  bool more = false;                   ///< There are further leases in later slots.
  std::uint64_t total = 0;             ///< Number of leases in all slots.
};
/// At most `limit` leases, starting at slot `first`.
LeasePage lease_page(const State& state, std::uint64_t first, std::size_t limit);
/// At most `limit` extents after `after`, ordered by id; without `inode`.
std::vector<wire::ExtentView> extent_views(const State& state, std::optional<ExtentId> after,
                                           std::size_t limit);
std::vector<wire::QuarantineView> quarantine_views(const State& state);  ///< Extents, then regions.
/// Leaves `revocations` out. A worker that is gone is listed while it has leases, and for
/// kShowsGoneWorkers as long as no later process has its name.
std::vector<wire::WorkerView> worker_views(const State& state, TimePoint now);
inline constexpr Duration kShowsGoneWorkers = std::chrono::minutes(10);
wire::RebindSummary summary_of(const LatencyHistory& history, TimePoint now);
std::vector<wire::StepView> step_views(const State& state);  ///< The newest sample of each worker.
/// The status, without `isolation` and `uptime_ms`.
wire::StatusView status_view(const State& state, TimePoint now);

/// Leases that are Live or Revoked; a stopping broker waits until there are none.
std::size_t leases_not_fenced(const State& state);

}  // namespace leasehold
