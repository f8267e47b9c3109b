/// What survivors notice of a storm of revocations.
///
/// Survivors stream; beside them leases of another tenant are held, without requests, so that the
/// batch is the same in both kinds of window. In a stormy window these are revoked one by one at a
/// steady rate and not replaced; in a calm one they are left alone. Windows alternate, so both meet
/// the same noise.
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
  std::uint32_t revocations = 50;  ///< In one window of a second.
  std::uint32_t pairs = 5;
};

struct StormResult {
  std::vector<double> calm_us;  ///< Inter-token gaps of the survivors.
  std::vector<double> storm_us;
  double achieved_per_s = 0;  ///< Revocations that were answered, per second of storm.
};

Result<StormResult> measure_storm(const StormConfig& config);

}  // namespace leasehold::bench
