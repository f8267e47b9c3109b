/// What operators see of the state. Pure; what only the server knows (counters, inodes, uptime,
/// users) is filled in by it.
#pragma once

#include <vector>

#include "broker/state.hpp"

namespace leasehold {

struct LeasePage {
  std::vector<wire::LeaseView> items;  ///< In the order of slots.
  bool more = false;                   ///< Others follow in later slots.
};
/// At most `limit` leases from slot `first` on.
LeasePage lease_page(const State& state, std::uint64_t first, std::size_t limit);
std::vector<wire::ExtentView> extent_views(const State& state);  ///< Without `inode`.
std::vector<wire::FenceView> fence_views(const State& state);    ///< Extents, then regions.
std::vector<wire::WorkerView> worker_views(const State& state);  ///< Without `revocations`.
std::vector<wire::TenantView> tenant_views(const State& state);
wire::StatusView status_view(const State& state, TimePoint now);  ///< Without those of the server.

/// Leases that are Live or Revoked: what a stopping broker waits for.
std::size_t leases_not_fenced(const State& state);

}  // namespace leasehold
