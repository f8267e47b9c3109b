/// `leasehold-bench revoke`: runs the measurements in order and collects their results in a report.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/checks/bench/clocks.hpp"

namespace leasehold::bench {

/// Names of the measurements, for `--only`.
inline constexpr const char* kMeasurements[] = {"clocks", "poll",   "storm",
                                                "mass",   "cycles", "deaths"};

struct RevokeConfig {
  std::string bin_dir;
  std::string demo_model;
  std::string large_model;  ///< The 0.5B shape; empty: not measured.
  std::set<std::string> measurements{std::begin(kMeasurements), std::end(kMeasurements)};
  bool quick = false;
  std::vector<std::uint32_t> tenants;  ///< Per `clocks` run; empty: 1, 8, 64, or 8 if quick.
  std::uint32_t flips = 0;             ///< Per run; 0: depends on the model.
  std::uint32_t mass_leases = 10'000;
  std::uint64_t seed = 1;
};

struct RevokeReport {
  nlohmann::json json;           ///< One object; keys end with their unit.
  std::vector<ClockRun> clocks;  ///< For the plot.
};

/// Called before each measurement with its description.
using Progress = std::function<void(const std::string& what)>;

/// Errors: the error of the first measurement that fails, with its name.
Result<RevokeReport> run_revoke_bench(const RevokeConfig& config, const Progress& progress);

}  // namespace leasehold::bench
