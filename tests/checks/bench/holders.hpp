/// One connection that acquires and releases leases with many calls in flight.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/ids.hpp"
#include "common/result.hpp"

namespace leasehold::bench {

/// Called while the leases are held; they are in slot order.
using OnLeasesHeld = std::function<Result<void>(const std::vector<LeaseId>& leases)>;

struct HolderConfig {
  std::string broker_socket;
  std::string tenant;
  std::uint32_t count = 1;      ///< Number of leases, one extent each.
  std::uint32_t in_flight = 1;  ///< Concurrent calls; each call is one lease.
};

/// Acquires all leases and calls `on_held`. Closing the connection releases the leases.
/// Errors: the broker's first refusal, ConnectionLost, those of `on_held`.
Result<void> hold_leases(const HolderConfig& config, const OnLeasesHeld& on_held);

/// Acquires and releases a lease `count` times, with `in_flight` concurrent chains. Errors: the
/// broker's first refusal, ConnectionLost.
Result<void> cycle_leases(const HolderConfig& config);

}  // namespace leasehold::bench
