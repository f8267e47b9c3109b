/// `leasehold-bench revoke`: which measurements are made, in which order, and what they add up to.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tools/checks/bench/clocks.hpp"

namespace leasehold::bench {

/// The measurements of the benchmark, as `--only` names them.
inline constexpr const char* kMeasurements[] = {"clocks", "poll",   "storm",
                                                "mass",   "cycles", "deaths"};

struct RevokeConfig {
  std::string bin_dir;
  std::string demo_model;
  std::string large_model;  ///< The 0.5B shape; empty: left out.
  std::set<std::string> measurements{std::begin(kMeasurements), std::end(kMeasurements)};
  bool quick = false;
  std::vector<std::uint32_t> tenants;  ///< In the runs of `clocks`; empty: 1, 8, 64, or 8 if quick.
  std::uint32_t flips = 0;             ///< In each of them; 0: as the model's speed allows.
  std::uint32_t mass_leases = 10'000;
  std::uint64_t seed = 1;
};

struct RevokeReport {
  nlohmann::json json;           ///< One object; keys carry their unit last.
  std::vector<ClockRun> clocks;  ///< For the plot.
};

/// Called before each measurement with what comes now.
using Progress = std::function<void(const std::string& what)>;

/// Errors: the first measurement's that failed, with its name.
Result<RevokeReport> run_revoke_bench(const RevokeConfig& config, const Progress& progress);

}  // namespace leasehold::bench
