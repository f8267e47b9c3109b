/// Many hosts that begin to serve one tenant at almost the same time: how long it takes until each
/// has its part, and how many transactions. Hosts are real TenantParts. etcd executes one
/// transaction after the other.
#pragma once

#include <cstdint>

#include "common/clock.hpp"

namespace leasehold::cell::scale {

struct Settlement {
  Duration time{};            ///< From the first demand until each broker has what is its host's.
  std::uint64_t writes = 0;   ///< Transactions that changed something.
  std::uint64_t refused = 0;  ///< Transactions whose conditions did not hold.
  std::uint64_t reads = 0;
  bool is_divided = false;  ///< Each host has what the division gives it.
};

/// The demands are random, and together more than the limit in half of the runs. Pure.
Settlement settle(std::uint64_t seed, int hosts);

}  // namespace leasehold::cell::scale
