/// How much the broker bears: many leases taken by one command, and leases per second.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace leasehold::bench {

struct MassConfig {
  std::string bin_dir;
  std::uint32_t leases = 10'000;
  std::uint32_t rounds = 3;
};

/// Seen from outside: a thread watches the words in the lease table.
struct MassRound {
  double flips_us = 0;   ///< First word down → last word down.
  double fenced_ms = 0;  ///< First word down → last word Fenced.
  double free_ms = 0;    ///< First word down → all memory scrubbed and leasable.
  double answer_ms = 0;  ///< The operator's call → its answer.
};
Result<std::vector<MassRound>> measure_mass_revocation(const MassConfig& config);

struct CycleConfig {
  std::string bin_dir;
  std::uint32_t cycles = 20'000;
  std::uint32_t in_flight = 16;
  bool journal = true;
};

/// acquire → release → fence → scrub → free, with one extent of 2 MiB each; the last one is free
/// again when the clock stops.
Result<double> measure_cycles_per_second(const CycleConfig& config);

}  // namespace leasehold::bench
