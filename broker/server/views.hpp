/// What operators see of the state. Pure; what only the server knows (counters, inodes, uptime,
/// users) is filled in by it.
#pragma once

#include <vector>

#include "broker/books/state.hpp"

namespace leasehold {

struct LeasePage {
  std::vector<wire::LeaseView> items;  ///< In the order of slots.
  bool more = false;                   ///< Others follow in later slots.
};
/// At most `limit` leases from slot `first` on.
LeasePage lease_page(const State& state, std::uint64_t first, std::size_t limit);
/// At most `limit` of those that follow `after`, in the order of their ids; without `inode`.
std::vector<wire::ExtentView> extent_views(const State& state, std::optional<ExtentId> after,
                                           std::size_t limit);
std::vector<wire::QuarantineView> quarantine_views(const State& state);  ///< Extents, then regions.
std::vector<wire::WorkerView> worker_views(const State& state);          ///< Without `revocations`.
/// At most `limit` of those that follow `after`, in the order of their names.
std::vector<wire::TenantView> tenant_views(const State& state, const std::optional<TenantId>& after,
                                           std::size_t limit);
wire::StatusView status_view(const State& state, TimePoint now);  ///< Without those of the server.

/// Leases that are Live or Revoked: what a stopping broker waits for.
std::size_t leases_not_fenced(const State& state);

}  // namespace leasehold
