/// `leasehold-bench revoke`: runs the measurements in order and collects their results in a report.
///
/// `poll` measures the cost of the gate (poll_cost.hpp), `clocks` the clocks of a revocation
/// (clocks.hpp); the other measurements are declared here.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/checks/bench/clocks.hpp"
#include "tests/checks/bench/figures.hpp"

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

/// Measures how revocations of other tenants' leases affect tenants that keep theirs (survivors).
///
/// Survivors stream. Another tenant holds leases without requests, so the batch is the same in
/// every window. In a storm window the leases of that tenant are revoked at a steady rate; in a
/// calm window none are. Windows alternate, so that both have the same noise; `pairs` counts pairs.
/// Samples: "calm_inter_token_us", "storm_inter_token_us", and once "revocations_per_s".
Result<Samples> measure_storm(const SystemConfig& config, std::uint32_t pairs);
/// The figures of a storm.
nlohmann::json storm_json(const Samples& samples);

/// Revokes many leases by one command, in rounds. A thread that polls the words in the lease table
/// takes the times from the first word Revoked: until the last word is Revoked
/// ("first_to_last_flip_us"), until the last is Fenced ("all_fenced_ms"), until all memory is
/// scrubbed and free ("all_free_ms"). "answer_ms" is from the operator's call to its reply.
Result<Samples> measure_mass_revocation(const std::string& bin_dir, std::uint32_t leases);

/// Runs cycles of acquire → release → fence → scrub → free, with one extent of 2 MiB per lease. The
/// time ends when all memory is free. {"per_s", "broker_cpu_us"}: cycles per second, and CPU time
/// of the broker's threads per cycle.
Result<nlohmann::json> measure_cycle_rate(const std::string& bin_dir, std::uint32_t cycles);

/// Kills the broker, the worker, or both while tenants stream, and starts them again at once; a
/// service manager keeps the broker's descriptors unless both are killed. Times in ms from the
/// SIGKILL until a revoked holder has read its typed end ("to_first_revoke_ms"); of a broker also
/// until it answers ("to_answer_ms"), until the revoked tenant reads a token under a new lease
/// ("to_first_grant_ms"), the longest gaps between tokens before and after, and what was lost; of
/// the others until the first tenant ("to_first_token_ms") and every tenant ("to_all_tenants_ms")
/// has read a token. A server without leases must restart both cold to reclaim memory.
Result<nlohmann::json> measure_broker_death(const SystemConfig& config);
Result<nlohmann::json> measure_worker_death(const SystemConfig& config);
Result<nlohmann::json> measure_cold_restart(const SystemConfig& config);

/// Time in ms from the death of a tenant's process until its memory is free.
Result<nlohmann::json> measure_tenant_death_ms(const SystemConfig& config);

/// Time in ms from the revocation of one tenant of several until its next token.
Result<nlohmann::json> measure_rebind_ms(const SystemConfig& config);

}  // namespace leasehold::bench
