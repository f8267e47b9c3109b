/// How revocations of other tenants' leases affect tenants that keep theirs (survivors).
///
/// Survivors stream. Another tenant holds leases without requests, so the batch is the same in
/// every window. In a storm window the leases of that tenant are revoked at a steady rate; in a
/// calm window none are. Windows alternate, so that both have the same noise.
#pragma once

#include <vector>

#include "common/result.hpp"
#include "tests/checks/bench/system.hpp"

namespace leasehold::bench {

struct StormResult {
  std::vector<double> calm_us;  ///< Inter-token gaps of the survivors.
  std::vector<double> storm_us;
  double achieved_per_s = 0;  ///< Revocations per second in storm windows.
};

/// `pairs` counts pairs of a calm and a storm window.
Result<StormResult> measure_storm(const SystemConfig& config, std::uint32_t pairs);

}  // namespace leasehold::bench
