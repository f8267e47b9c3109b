/// One holder process with many calls under way: acquires and releases as fast as it is answered.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "common/result.hpp"

namespace leasehold::bench {

/// What is done while leases are held; they come in the order of their slots.
using OnLeasesHeld = std::function<Result<void>(const std::vector<LeaseId>& leases)>;

struct HolderConfig {
  std::string broker_socket;
  std::string tenant;
  std::uint32_t count = 1;      ///< Leases, of one extent each.
  std::uint32_t in_flight = 1;  ///< Calls under way at once.
};

/// Acquires them all on one connection and calls `on_held` while they are held; the connection's
/// end gives them back. Errors: the broker's first refusal, ConnectionLost, what `on_held` gave.
Result<void> hold_leases(const HolderConfig& config, const OnLeasesHeld& on_held);

/// Acquires a lease and releases it, `count` times, in `in_flight` chains at once. Errors: as
/// above.
Result<void> cycle_leases(const HolderConfig& config);

}  // namespace leasehold::bench
