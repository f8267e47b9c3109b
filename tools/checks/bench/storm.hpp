/// How revocations of other tenants' leases affect tenants that keep theirs (survivors).
///
/// Survivors stream. Another tenant holds leases without requests, so the batch is the same in
/// every window. In a storm window its leases are revoked at a steady rate; in a calm window none
/// are. Windows alternate, so that both have the same noise.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "tools/checks/bench/statistics.hpp"

namespace leasehold::bench {

struct StormConfig {
  std::string bin_dir;
  std::string model_path;
  std::uint32_t threads = 1;
  std::uint32_t survivors = 8;
  std::uint32_t revocations = 50;  ///< Per window of one second.
  std::uint32_t pairs = 5;
};

struct StormResult {
  std::vector<double> calm_us;  ///< Inter-token gaps of the survivors.
  std::vector<double> storm_us;
  double achieved_per_s = 0;  ///< Revocations per second of storm.
};

Result<StormResult> measure_storm(const StormConfig& config);

}  // namespace leasehold::bench
