/// Load on the broker alone: many leases revoked by one command, and leases per second.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace leasehold::bench {

/// Times of one mass revocation, taken by a thread that polls the words in the lease table.
struct MassRound {
  double flips_us = 0;   ///< First word Revoked → last word Revoked.
  double fenced_ms = 0;  ///< First word Revoked → last word Fenced.
  double free_ms = 0;    ///< First word Revoked → all memory scrubbed and free.
  double answer_ms = 0;  ///< The operator's call → its reply.
};
Result<std::vector<MassRound>> measure_mass_revocation(const std::string& bin_dir,
                                                       std::uint32_t leases);

struct CycleRate {
  double per_second = 0;
  double broker_cpu_us = 0;  ///< CPU time of the broker's threads per cycle.
};

/// Runs cycles of acquire → release → fence → scrub → free, with one extent of 2 MiB per lease. The
/// time ends when all memory is free.
Result<CycleRate> measure_cycle_rate(const std::string& bin_dir, std::uint32_t cycles);

}  // namespace leasehold::bench
