/// What the broker's control path costs, and how it grows with leases that are not concerned.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/result.hpp"

namespace leasehold::bench {

struct ControlBenchConfig {
  std::string bin_dir;
  std::string model_path;
  std::uint32_t leases = 3'000;        ///< Idle leases beside those that are measured.
  std::uint32_t mass_leases = 10'000;  ///< Revoked by one command.
  std::uint32_t cycles = 10'000;
  std::uint32_t rounds = 20;  ///< Revocations that are waited for.
};

/// {"control": {"wait", "idle", "mass", "cycles"}}. Errors: those of System and of the broker.
///
/// wait: `brokerctl revoke LEASE --wait`, without the start of the program: "calls" of the broker
///   and the median time "alone_ms"; "beside_ms" with `leases` other leases, and their ratio.
/// idle: memory that a lease costs while its tenant runs nothing: bytes of the worker's process
///   ("worker_bytes"), and of the broker's status ("touched_bytes"), per lease.
/// mass: medians of measure_mass_revocation, and "free_us" per lease until all memory is free.
/// cycles: measure_cycle_rate, and the CPU time of the broker for a call of `lease.query`
///   ("query_cpu_us"), the unit for the other figures on machines of different speed.
Result<nlohmann::json> measure_control(const ControlBenchConfig& config);

}  // namespace leasehold::bench
